/** A number as Prometheus' own library prints it: an exponent from a million on, and below a ten-thousandth. */
export function printNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const size = Math.abs(value);
  // What JavaScript prints without an exponent on its own starts lower and ends higher.
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return String(value);
  const [digits = '', exponent = ''] = value.toExponential().split('e');
  return `${digits}e${exponent[0] ?? '+'}${exponent.slice(1).padStart(2, '0')}`;
}
