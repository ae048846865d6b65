/** Metrics as data, and as the text that Prometheus reads. */
import { printNumber } from './number.ts';

export type MetricType = 'counter' | 'gauge' | 'histogram';
export type LabelPair = readonly [name: string, value: string];

export interface Sample {
  readonly suffix: '' | '_bucket' | '_sum' | '_count';
  /** In the order in which they are printed. */
  readonly labels: readonly LabelPair[];
  readonly value: number;
}

/** All that goes under one name. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  readonly samples: readonly Sample[];
}

/** What the exposition is sent as; the last part says how names outside of the old alphabet would be written. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores';

/** By name. A family without samples is not mentioned at all. */
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
  return `${name}${suffix}${pairs === '' ? '' : `{${pairs}}`} ${printNumber(value)}\n`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
