/** `junction doctor`: what on this node keeps services from working. Exit code 1 when it finds a problem. */
import { stringify } from 'yaml';
import type { ValidConfig } from '../config/effective.ts';
import { doctor } from '../doctor/doctor.ts';
import { doctorMachine } from '../doctor/machine.ts';
import type { ProxyLook } from '../doctor/proxy.ts';
import { systemMachine } from '../modes/prerequisites/machine.ts';
import { findHolder } from '../system/instanceLock.ts';
import { printDoctor } from './doctorOutput.ts';
import type { Output, PrintOptions } from './output.ts';
import { painter } from './table.ts';

export async function doctorCommand(
  config: ValidConfig,
  nodeName: string,
  output: Output,
  options: PrintOptions,
): Promise<number> {
  const report = await doctor({
    config,
    nodeName,
    families: options.families,
    proxy: await lookAtProxy(),
    machines: {
      doctor: doctorMachine(config.junction.sysctlRoot),
      checks: systemMachine(config.junction),
    },
  });
  if (options.output === 'json') output.out(`${JSON.stringify(report, null, 2)}\n`);
  else if (options.output === 'yaml') output.out(stringify(report));
  else
    output.painted(
      printDoctor(report, painter(process.stdout), {
        columns: options.columns,
        isWide: options.output === 'wide',
      }),
    );
  return report.hasProblems ? 1 : 0;
}

async function lookAtProxy(): Promise<ProxyLook> {
  const holder = await findHolder();
  return { holder: holder?.text, whyNoStatus: 'not asked', socket: '/run/junction/junction.sock' };
}
