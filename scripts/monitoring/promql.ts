/**
 * Queries of PromQL, read as far as it takes to know what they name: metrics, labels and functions. A name that nothing
 * has would be found in no other way: to Prometheus it is a metric without samples.
 */
import { type Catalogue, type Metric, TARGET_LABELS } from './catalogue.ts';

export interface Selector {
  /** With the suffix of a histogram's series. */
  readonly series: string;
  readonly labels: readonly string[];
  /** As it is written, without a range. */
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** `rate` in `rate(x[5m])`. */
  readonly within: string | undefined;
}

interface Query {
  readonly selectors: readonly Selector[];
  /** After by, on, without, …, and group_left. */
  readonly groupings: readonly string[];
  readonly functions: readonly string[];
}

interface Token {
  readonly kind: 'name' | 'text' | 'number' | 'variable' | 'sign';
  readonly text: string;
  readonly start: number;
}

const TOKEN =
  /\s+|(?<text>"(?:[^"\\]|\\.)*")|(?<variable>\$\w+)|(?<number>\d[\w.]*)|(?<name>[a-zA-Z_:][\w:]*)|(?<sign>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){}[\],])/gy;
const GROUPINGS: ReadonlySet<string> = new Set([
  'by',
  'without',
  'on',
  'ignoring',
  'group_left',
  'group_right',
]);
const WORDS: ReadonlySet<string> = new Set(['and', 'or', 'unless', 'bool', 'offset']);
const FUNCTIONS: ReadonlySet<string> = new Set(
  'sum max min count topk rate increase changes histogram_quantile time absent clamp_min max_over_time avg_over_time last_over_time'.split(
    ' ',
  ),
);
/** Of counters alone. */
const OF_COUNTERS: ReadonlySet<string> = new Set(['rate', 'increase']);
const HISTOGRAM_SUFFIXES = ['_bucket', '_count', '_sum'] as const;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; at < text.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const { groups } = TOKEN.exec(text) ?? {};
    if (TOKEN.lastIndex === 0) throw new Error(`cannot be read from here: ${text.slice(at)}`);
    const [kind, found] = Object.entries(groups ?? {}).find(([, part]) => part !== undefined) ?? [];
    if (kind !== undefined && found !== undefined)
      tokens.push({ kind: kind as Token['kind'], text: found, start: at });
  }
  return tokens;
}

export function parseQuery(text: string): Query {
  const tokens = tokensOf(text);
  const at = (index: number): string => tokens[index]?.text ?? '';
  const closing = (from: number, sign: string): number => {
    const found = tokens.findIndex((token, index) => index > from && token.text === sign);
    if (found < 0) throw new Error(`there is no ${sign} after: ${text.slice(tokens[from]?.start)}`);
    return found;
  };
  const namesIn = (from: number, to: number): readonly string[] =>
    tokens.slice(from + 1, to).flatMap((token) => (token.kind === 'name' ? [token.text] : []));

  const selectors: Selector[] = [];
  const groupings: string[] = [];
  const functions: string[] = [];
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index];
    if (token?.kind !== 'name' || WORDS.has(token.text)) continue;
    const next = at(index + 1);
    if (GROUPINGS.has(token.text)) {
      if (next !== '(') continue; // group_left without labels
      const end = closing(index + 1, ')');
      groupings.push(...namesIn(index + 1, end));
      index = end;
    } else if (next === '(' || GROUPINGS.has(next)) {
      functions.push(token.text);
    } else {
      const last = next === '{' ? closing(index + 1, '}') : index;
      const { start } = token;
      const end = (tokens[last]?.start ?? 0) + at(last).length;
      const within = at(index - 1) === '(' ? at(index - 2) || undefined : undefined;
      const labels = namesIn(index, last);
      selectors.push({ series: token.text, labels, text: text.slice(start, end), start, end, within });
      index = last;
    }
  }
  return { selectors, groupings, functions };
}

/** The metric whose series this is: of a histogram, one with a suffix. */
function metricOf(catalogue: Catalogue, series: string): Metric | undefined {
  const suffix = HISTOGRAM_SUFFIXES.find((each) => series.endsWith(each));
  const histogram = suffix === undefined ? undefined : catalogue.get(series.slice(0, -suffix.length));
  if (histogram?.type === 'histogram') return histogram;
  const metric = catalogue.get(series);
  return metric?.type === 'histogram' ? undefined : metric;
}

/** What is wrong with a query, in words; nothing: it can be sent. */
export function problemsOf(catalogue: Catalogue, text: string): readonly string[] {
  const { selectors, groupings, functions } = parseQuery(text);
  const problems: string[] = [];
  const known = new Set(TARGET_LABELS);
  for (const { series, labels, within } of selectors) {
    const metric = metricOf(catalogue, series);
    if (!metric) {
      problems.push(`there is no metric ${series}`);
      continue;
    }
    const own = new Set([...metric.labels, ...(series.endsWith('_bucket') ? ['le'] : [])]);
    for (const label of own) known.add(label);
    for (const label of labels)
      if (!own.has(label) && !TARGET_LABELS.has(label)) problems.push(`${series} has no label ${label}`);
    if (within !== undefined && OF_COUNTERS.has(within) && metric.type === 'gauge')
      problems.push(`${within} of ${series}, which is a gauge`);
    if (functions.includes('histogram_quantile') && !(own.has('le') && groupings.includes('le')))
      problems.push(`histogram_quantile of ${series} needs buckets, and by (le)`);
  }
  for (const label of groupings)
    if (!known.has(label)) problems.push(`no metric of the query has a label ${label}`);
  for (const name of functions) if (!FUNCTIONS.has(name)) problems.push(`there is no function ${name}`);
  if (selectors.length === 0) problems.push('no metric is named');
  return problems;
}

/** The query with these matchers in each selector of a target's series; `ALERTS` and cAdvisor's are other jobs'. */
export function withMatchers(catalogue: Catalogue, text: string, matchers: string): string {
  const mine = parseQuery(text).selectors.filter(
    ({ series }) => series === 'up' || metricOf(catalogue, series)?.modes !== undefined,
  );
  let result = '';
  let done = 0;
  for (const { series, start, end, text: written } of mine) {
    const own = written.slice(series.length).replaceAll(/^\{\s*|\s*\}$/g, '');
    result += `${text.slice(done, start)}${series}{${own === '' ? matchers : `${matchers}, ${own}`}}`;
    done = end;
  }
  return result + text.slice(done);
}
