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

/** Marks what ought to be reached. Of radio buttons in one group, the browser stops at one. */
const PREPARE = `(() => {
  document.activeElement?.blur();
  const isShown = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest('[inert]');
  const wanted = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter((e) => e.tabIndex >= 0 && !e.disabled && isShown(e))
    .filter((e) => e.type !== 'radio' || e.checked);
  window.walk = { wanted: new Set(wanted), seen: new Set(), unseen: [], count: wanted.length };
  return wanted.length;
})()`;

/**
 * Of the element that has focus now; false: the walk is over. Scrollable regions get focus too, from the browser; a date
 * keeps it for each of its parts.
 */
const STEP = `(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return false;
  if (window.walk.seen.has(e)) return e === window.walk.last;
  window.walk.last = e;
  window.walk.seen.add(e);
  const style = getComputedStyle(e);
  const around = e.closest('label') ? getComputedStyle(e.closest('label')) : style;
  const isSeen = [style, around].some((s) => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none');
  if (!isSeen) window.walk.unseen.push(e.outerHTML.slice(0, 120));
  return true;
})()`;

const RESULT = `({
  missed: [...window.walk.wanted].filter((e) => !window.walk.seen.has(e) && e.isConnected).map((e) => e.outerHTML.slice(0, 120)),
  unseen: window.walk.unseen,
  reached: window.walk.seen.size,
})`;

/** Presses Tab from the beginning of the page until focus has been everywhere. */
export async function walkByTab(tab: Tab): Promise<Walk> {
  await tab.evaluate(PREPARE);
  for (let presses = 0; presses < MOST; presses++) {
    await tab.page.keyboard.press('Tab');
    if (!(await tab.evaluate<boolean>(STEP))) break;
  }
  return tab.evaluate<Walk>(RESULT);
}
