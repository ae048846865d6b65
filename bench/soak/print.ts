/** What a soak came to, for people. */
import { held, type SoakReport } from './soak.ts';

const MOST_LINES = 20;

export function printReport(report: SoakReport): string {
  const { seconds, seed, changes, starts, tamperings, said, traffic } = report;
  const { unattended } = traffic;
  const count = (word: string): number => said.get(word) ?? 0;
  const lines = [
    `${report.mode}, ${seconds} s, seed ${seed}: ${held(report) ? 'it held' : 'it did not hold'}`,
    `  changes of services       ${changes}, in ${count('Synced rules')} syncs; ${count('Sync failed')} syncs failed and were repeated`,
    `  faults on our own way     ${count('refused')} transactions refused, ${count('answer lost')} answers lost, ${count('unreadable')} readings failed`,
    `  restarts                  ${starts.killed} after kill -9, ${starts.stopped} after SIGTERM; ${count('start failed')} starts ended by themselves and were repeated`,
    `  changes by others         ${[...tamperings].map(([name, times]) => `${name} ${times}`).join(', ')}`,
    `  long-lived connections    ${traffic.sessions}, ${traffic.messages} messages, ${traffic.lostSessions.length} lost`,
    `  flows of datagrams        ${traffic.flows}, ${traffic.datagrams} datagrams, ${traffic.lostDatagrams.length} lost or led astray`,
    `  new connections           ${traffic.connections}, ${traffic.lostConnections.length} failed; ${traffic.heldBack} had to send their first packet again, the longest wait was ${Math.round(traffic.longestWaitMs)} ms`,
    ...(report.hasBackstop
      ? [
          `  rules taken away          ${traffic.holes} times, all of the above included`,
          `    while Junction was dead ${unattended.holes} times more: ${unattended.sessions} connections broken, ${unattended.connections} new ones failed`,
        ]
      : [
          `  rules taken away          ${unattended.holes} times, not in the above: ${unattended.sessions} connections broken, ${unattended.connections} new ones failed`,
        ]),
    `  packets against decide    ${report.packetRows} rows, ${report.wrongPackets.length} wrong`,
    `  rules against fresh ones  ${report.strayLines.length === 0 ? 'the same' : `${report.strayLines.length} lines differ`}`,
  ];
  const wrong = [
    ...report.wrongPackets,
    ...report.strayLines,
    ...traffic.lostSessions,
    ...traffic.lostDatagrams,
    ...traffic.lostConnections,
  ];
  return [...lines, ...wrong.slice(0, MOST_LINES).map((line) => `  ! ${line}`), ''].join('\n');
}
