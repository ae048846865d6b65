/** What `junction doctor` prints for people: each group on a line, and each finding with evidence, consequence and cure. */
import type { DoctorReport } from '../explain/doctorReport.ts';
import { doctorSummary, fineSummary } from '../explain/doctorText.ts';
import type { Finding } from '../explain/types.ts';
import type { Colour, Paint } from '../text/paint.ts';
import { printableLine } from '../text/printable.ts';
import { wrap } from '../text/wrap.ts';

const COLOURS: Readonly<Record<Finding['severity'], Colour>> = {
  error: 'red',
  warning: 'yellow',
  info: 'cyan',
};
const LABEL_COLUMNS = 15;
const INDENT = '  ';

export function printDoctor(
  { node, mode, groups }: DoctorReport,
  paint: Paint,
  { columns = 120, isWide = false }: { readonly columns?: number | undefined; readonly isWide?: boolean },
): string {
  const lines: string[] = [];
  const put = (label: string, text: string): void => {
    const room = Math.max(20, columns - INDENT.length - LABEL_COLUMNS);
    const wrapped = wrap(printableLine(text), room);
    for (const [index, line] of wrapped.entries())
      lines.push(`${INDENT}${(index === 0 ? label : '').padEnd(LABEL_COLUMNS)}${line}`);
  };
  const width = Math.max(0, ...groups.map(({ name }) => name.length));
  for (const { name, findings, fine, notEvaluated } of groups) {
    const state = findings[0]?.severity ?? 'ok';
    lines.push(
      `${paint('bold', name.padEnd(width))}  ${state === 'ok' ? paint('green', 'ok') : paint(COLOURS[state], state)}${findings.length > 0 || isWide || fine.length === 0 ? '' : `  ${paint('dim', printableLine(fineSummary(fine)))}`}`,
    );
    if (isWide) lines.push(...fine.map((text) => `${INDENT}${printableLine(text)}`));
    for (const { severity, text, evidence, consequence, cure, reference } of findings) {
      const mark = severity === 'info' ? '·' : '✗';
      lines.push(
        ...wrap(printableLine(text), columns - 2 * INDENT.length).map(
          (line, index) => `${index === 0 ? paint(COLOURS[severity], `${mark} `) : INDENT}${line}`,
        ),
      );
      if (evidence !== undefined) put('evidence', evidence);
      if (reference?.where !== undefined) put('where', reference.where);
      if (consequence !== undefined) put('consequence', consequence);
      if (cure !== undefined) put('cure', cure);
    }
    for (const text of notEvaluated) put('not looked at', text);
  }
  lines.push('', printableLine(doctorSummary({ node, mode, groups })));
  return `${lines.join('\n')}\n`;
}
