import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** How wide an element is, in pixels; 0 until it is known. */
export function useWidth(): readonly [{ current: HTMLDivElement | null }, number] {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const own = element.current;
    if (!own) return undefined;
    setWidth(Math.floor(own.clientWidth));
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(own);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}
