/** A short run of `npm run soak`: everything at once, and clients of services that do not change do not notice. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SOAK_MODES } from '../../bench/soak/modes.ts';
import { printReport } from '../../bench/soak/print.ts';
import { held, runSoak } from '../../bench/soak/soak.ts';
import { useLab } from '../lab/requireLab.ts';

const lab = useLab();
const built = (name: string): string => fileURLToPath(new URL(`../../dist/${name}`, import.meta.url));
/** The others take longer, and are left to the command. */
const modes = SOAK_MODES.filter(({ name }) => name === 'nftables' || name === 'iptables-nft');

test.each(modes)(
  '$name: random changes, faults, other programs and kill -9',
  { timeout: 1_200_000 },
  async (mode) => {
    const said: string[] = [];
    const report = await runSoak({
      lab: lab(),
      mode,
      seconds: 6,
      seed: 20_261_115,
      slots: 8,
      programs: { plain: built('junction.js'), faulty: built('soak-daemon.js') },
      say: (text) => said.push(text),
    });
    expect(held(report) ? 'it held' : [...said, printReport(report)].join('\n')).toBe('it held');
    expect(report.changes).toBeGreaterThan(20);
    expect(report.packetRows).toBeGreaterThan(20);
  },
);
