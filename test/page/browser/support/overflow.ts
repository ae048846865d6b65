/** What makes the page wider than the screen. */
import type { Tab } from './tab.ts';

const FIND = `(() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return '';
  const wide = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > clientWidth + 1 && (!e.parentElement.closest('.scroll') || getComputedStyle(e).position === 'absolute'));
  return scrollWidth + ' px of ' + clientWidth + ': ' + wide.slice(0, 4).map((e) => e.outerHTML.slice(0, 100)).join('; ');
})()`;

/** Empty: nothing, one need not scroll sideways. */
export async function overflowAt(tab: Tab, width: number): Promise<string> {
  await tab.page.setViewportSize({ width, height: 900 });
  // The drawing is made anew for another width, with the next frames.
  await tab.evaluate(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))',
  );
  return tab.evaluate<string>(FIND);
}
