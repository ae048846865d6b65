/** Follows what is seen of a long table while the page scrolls. */
import type { RefObject } from 'preact';
import { useCallback, useLayoutEffect, useState } from 'preact/hooks';
import { type RowRange, rowWindow } from './rowWindow.ts';

interface Covered {
  /** Pixels of the window above and below that something covers. */
  readonly above: number;
  readonly below: number;
}

/** What is seen of the rows; `body` has all of them below each other. */
export function seenOf(
  body: HTMLElement,
  { above, below }: Covered,
): { readonly top: number; readonly height: number } {
  const { top } = body.getBoundingClientRect();
  return { top: above - top, height: innerHeight - above - below };
}

export function useRowWindow(body: RefObject<HTMLElement | null>, rows: number, rowHeight: number): RowRange {
  const measure = useCallback((): RowRange => {
    const seen = body.current
      ? seenOf(body.current, { above: 0, below: 0 })
      : { top: 0, height: innerHeight };
    return rowWindow({ rows, rowHeight, ...seen });
  }, [rows, rowHeight]);
  const [shown, setShown] = useState(measure);
  useLayoutEffect(() => {
    const update = (): void => {
      const next = measure();
      setShown((before) => (before.first === next.first && before.end === next.end ? before : next));
    };
    update();
    addEventListener('scroll', update, { passive: true });
    addEventListener('resize', update, { passive: true });
    return () => {
      removeEventListener('scroll', update);
      removeEventListener('resize', update);
    };
  }, [measure]);
  // Until it is measured again, not beyond the end.
  return { first: Math.min(shown.first, rows), end: Math.min(shown.end, rows) };
}
