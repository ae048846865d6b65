/** `junction status`: how the running proxy is. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import type { Colour } from '../text/paint.ts';
import { wrap } from '../text/wrap.ts';
import type { Status } from '../explain/status.ts';
import { parseService } from '../explain/question.ts';
import { statusHeading, statusParts, waitPart } from '../explain/statusText.ts';
import type { Finding } from '../explain/types.ts';
import { showAnswer, type Viewer } from './answerOutput.ts';
import { type AskedWait, openAnswers } from './answers.ts';
import { UsageError } from './commands.ts';
import { serviceName } from './objectNames.ts';
import type { Output } from './output.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { cellOf } from './table.ts';

export async function statusCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const wait = askedWait(parsed);
  const answers = await openAnswers(parsed, output);
  return showAnswer(parsed, output, async () => {
    const answer = await answers.status(wait);
    const isGood = answer.wait?.isApplied ?? !statusHeading(answer).isWrong;
    return { answer, text: (viewer) => statusLines(answer, viewer), exitCode: isGood ? 0 : 1 };
  });
}

function askedWait(parsed: ParsedFlags): AskedWait | undefined {
  const given = flagValue(parsed, OWN_FLAGS.wait);
  const name = flagValue(parsed, OWN_FLAGS.waitFor);
  const resourceVersion = flagValue(parsed, OWN_FLAGS.resourceVersion) || undefined;
  const namespace = flagValue(parsed, OWN_FLAGS.namespace);
  if (name === '' && resourceVersion !== undefined)
    throw new UsageError(['--resource-version goes with --wait-for']);
  if (resourceVersion !== undefined && !/^\d+$/.test(resourceVersion))
    throw new UsageError(['--resource-version must be a number, as kubectl get -o yaml shows it']);
  if (name === '' && namespace !== '') throw new UsageError(['--namespace goes with --wait-for']);
  if (name === '' && given === 0) return undefined;
  if (flagValue(parsed, OWN_FLAGS.watch))
    throw new UsageError([`--${name === '' ? 'wait' : 'wait-for'} answers once, and --watch does not end`]);
  const timeoutMs = given === 0 ? DEFAULT_WAIT_MS : given;
  if (name === '') return { timeoutMs };
  const hasNamespace = namespace !== '' || !/^(?:(?:svc|services?)\/)?[^/]*$/.test(name);
  const { service, port } = parseService(serviceName(name, hasNamespace ? namespace : 'default'));
  if (port !== undefined) throw new UsageError(['--wait-for takes a Service without a port']);
  return { timeoutMs, service, resourceVersion };
}

const DEFAULT_WAIT_MS = 30_000;

const NAME_WIDTH = 14;
const INDENT = '  ';

function* statusLines(status: Status, { columns, paint }: Viewer): Generator<string> {
  const { title, how, state, isWrong } = statusHeading(status);
  yield `${paint('bold', cellOf(title))}, ${cellOf(how)}: ${paint(isWrong ? 'red' : 'green', state)}\n`;
  const room = Math.max(40, columns - NAME_WIDTH - INDENT.length);
  for (const { name, lines, isOfFamily } of [...waitPart(status), ...statusParts(status)]) {
    const label = isOfFamily ? INDENT + name : name;
    const wrapped = lines.flatMap((line) => wrap(cellOf(line), room));
    for (const [index, line] of wrapped.entries())
      yield `${INDENT}${(index === 0 ? label : '').padEnd(NAME_WIDTH)}${line}\n`;
  }
  for (const finding of status.findings) {
    const [colour, sign] = SIGNS[finding.severity];
    const [first = '', ...rest] = findingLines(finding).flatMap((line) => wrap(cellOf(line), columns - 4));
    yield `${INDENT}${paint(colour, sign)} ${first}\n`;
    for (const line of rest) yield `${INDENT}  ${line}\n`;
  }
}

const SIGNS: Readonly<Record<Finding['severity'], readonly [Colour, string]>> = {
  error: ['red', '✗'],
  warning: ['yellow', '!'],
  info: ['cyan', 'i'],
};

function findingLines({ text, evidence, consequence, cure }: Finding): readonly string[] {
  return [
    text,
    ...(evidence === undefined ? [] : [evidence]),
    ...(consequence === undefined ? [] : [consequence]),
    ...(cure === undefined ? [] : [`what to do: ${cure}`]),
  ];
}
