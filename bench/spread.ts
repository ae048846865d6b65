/** Several measurements of one thing, as the middle one and how far they lie apart. */

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

/** `12 ms (11 ms–19 ms)` */
export function spread(values: readonly number[], print: (value: number) => string): string {
  const [least, middle, most] = [Math.min(...values), median(values), Math.max(...values)].map(print);
  return least === most ? `${middle}` : `${middle} (${least}–${most})`;
}

export function ms(value: number): string {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value.toFixed(value < 1 ? 3 : value < 100 ? 1 : 0)} ms`;
}

export function times(value: number): string {
  return `${value.toFixed(2)}×`;
}

export function mebibytes(value: number): string {
  return `${(value / (1024 * 1024)).toFixed(0)} MiB`;
}
