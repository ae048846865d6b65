/** The keyboard alone: where focus goes, and whether one sees it. */
import type { Tab } from './tab.ts';

interface Walk {
  /** What the key Tab should reach and did not. */
  readonly missed: readonly string[];
  /** What had focus without a visible sign. */
  readonly unseen: readonly string[];
  readonly reached: number;
}

/** More elements than any view of the demo has. */
const MOST = 300;
/** Between two looks at whether the walk is over. */
const PRESSES = 10;

/**
 * Notes what ought to be reached, and what is: scrollable regions get focus too, from the browser. Of radio buttons in one
 * group, the browser stops at one. Back at the first element, the walk is over.
 */
const BEGIN = `(() => {
  document.activeElement?.blur();
  const isShown = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest('[inert]');
  const wanted = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter((e) => e.tabIndex >= 0 && !e.disabled && isShown(e))
    .filter((e) => e.type !== 'radio' || e.checked);
  const walk = window.walk = { wanted, reached: new Set(), unseen: [], isOver: false };
  document.addEventListener('focusin', ({ target: e }) => {
    if (walk.reached.has(e)) walk.isOver ||= e === [...walk.reached][0];
    walk.reached.add(e);
    const style = getComputedStyle(e);
    const around = e.closest('label') ? getComputedStyle(e.closest('label')) : style;
    const isSeen = [style, around].some((s) => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none');
    if (!isSeen) walk.unseen.push(e.outerHTML.slice(0, 120));
  });
})()`;

const RESULT = `({
  missed: walk.wanted.filter((e) => !walk.reached.has(e) && e.isConnected).map((e) => e.outerHTML.slice(0, 120)),
  unseen: walk.unseen,
  reached: walk.reached.size,
})`;

/** Presses Tab from the beginning of the page until focus has been everywhere. */
export async function walkByTab(tab: Tab): Promise<Walk> {
  await tab.evaluate(BEGIN);
  for (let presses = 0; presses < MOST && !(await tab.evaluate<boolean>('walk.isOver')); presses += PRESSES)
    for (let press = 0; press < PRESSES; press++) await tab.page.keyboard.press('Tab');
  return tab.evaluate<Walk>(RESULT);
}
