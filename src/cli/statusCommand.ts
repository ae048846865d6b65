/** `junction status`: how the running proxy is. */
import type { ParsedFlags } from '../config/commandLine.ts';
import type { Colour } from '../text/paint.ts';
import { wrap } from '../text/wrap.ts';
import type { Status } from '../explain/status.ts';
import { statusHeading, statusParts } from '../explain/statusText.ts';
import type { Finding } from '../explain/types.ts';
import { showAnswer, type Viewer } from './answerOutput.ts';
import { openAnswers } from './answers.ts';
import type { Output } from './output.ts';
import { cellOf } from './table.ts';

export async function statusCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const answers = await openAnswers(parsed, output);
  return showAnswer(parsed, output, async () => {
    const answer = await answers.status();
    const isWrong = answer.findings.some(({ severity }) => severity === 'error');
    return { answer, text: (viewer) => statusLines(answer, viewer), exitCode: isWrong ? 1 : 0 };
  });
}

const NAME_WIDTH = 14;
const INDENT = '  ';

function* statusLines(status: Status, { columns, paint }: Viewer): Generator<string> {
  const { title, how, state, isWrong } = statusHeading(status);
  yield `${paint('bold', cellOf(title))}, ${cellOf(how)}: ${paint(isWrong ? 'red' : 'green', state)}\n`;
  const room = Math.max(40, columns - NAME_WIDTH - INDENT.length);
  for (const { name, lines, isOfFamily } of statusParts(status)) {
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
