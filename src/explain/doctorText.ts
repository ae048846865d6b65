/** A report of `doctor` in a line. */
import type { Finding } from './types.ts';
import { counted } from '../text/ages.ts';
import type { DoctorReport } from './doctorReport.ts';

/** `node1, nftables mode: 1 error, 2 warnings.` */
export function doctorSummary({
  node,
  mode,
  groups,
}: Pick<DoctorReport, 'node' | 'mode' | 'groups'>): string {
  const findings = groups.flatMap((group) => group.findings);
  const count = (severity: Finding['severity']): readonly string[] => {
    const number = findings.filter((each) => each.severity === severity).length;
    return number === 0 ? [] : [counted(number, severity)];
  };
  const counts = [...count('error'), ...count('warning')];
  return `${node}, ${mode} mode: ${counts.length === 0 ? 'no problem found' : counts.join(', ')}.`;
}

/** Of a group without findings. */
export function fineSummary(fine: readonly string[]): string {
  return fine.length === 1 ? (fine[0] ?? '') : counted(fine.length, 'check');
}
