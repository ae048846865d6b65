/** Metrics as data, and as the text that Prometheus reads. */

export type MetricType = 'counter' | 'gauge' | 'histogram';
export type LabelPair = readonly [name: string, value: string];

export interface Sample {
  /** Of a histogram's series. */
  readonly suffix?: '_bucket' | '_sum' | '_count';
  /** In the order in which they are printed. */
  readonly labels: readonly LabelPair[];
  readonly value: number;
}

/** All samples of one name. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  /** Of its samples, whether it has any yet or not; without `le`. */
  readonly labelNames: readonly string[];
  readonly samples: readonly Sample[];
}

/** The content type of the exposition; its last part says how names outside of the old alphabet would be written. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores';

/** A metric without labels that is read when it is asked for; `undefined`: it cannot be read now. */
type Reading = readonly [help: string, value: number | undefined];

/** By name: counters end in `_total`, and the others are gauges. */
export function readings(table: Readonly<Record<string, Reading>>): readonly MetricFamily[] {
  return Object.entries(table).flatMap(([name, [help, value]]): readonly MetricFamily[] => {
    if (value === undefined || Number.isNaN(value)) return [];
    const type = name.endsWith('_total') ? 'counter' : 'gauge';
    return [{ name, help, type, labelNames: [], samples: [{ labels: [], value }] }];
  });
}

/** Sorted by name. A family without samples is left out. */
export function printFamilies(families: readonly MetricFamily[]): string {
  return families
    .filter(({ samples }) => samples.length > 0)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(printFamily)
    .join('');
}

function printFamily({ name, help, type, samples }: MetricFamily): string {
  const head = `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n`;
  return head + samples.map((sample) => printSample(name, sample)).join('');
}

function printSample(name: string, { suffix, labels, value }: Sample): string {
  const pairs = labels.map(([label, text]) => `${label}="${escapeLabel(text)}"`).join(',');
  return `${name}${suffix ?? ''}${pairs === '' ? '' : `{${pairs}}`} ${printNumber(value)}\n`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

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
