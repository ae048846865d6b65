/** `junction plan`: what would be written for given manifests, or for what an API server has. Needs no root and touches nothing. */
import type { ValidConfig } from '../config/effective.ts';
import type { Settings } from '../config/settings.ts';
import { printableLine } from '../text/printable.ts';
import { UsageError } from './commands.ts';
import type { Output, PrintOptions } from './output.ts';
import {
  isNothing,
  nodeNote,
  pathNames,
  planFamily,
  type PlanInput,
  printProblems,
  readManifests,
} from './planInput.ts';
import { planNotes, printPlans } from './planOutput.ts';

/**
 * Returns the exit code: 1 if something of the input could not be used. Rules of a part would take down the rest where
 * somebody pipes them into iptables-restore, so then there are none; nor is there anything of files that could not
 * be read.
 */
export async function planCommand(
  config: ValidConfig,
  settings: Settings,
  output: Output,
  options: PrintOptions,
): Promise<number> {
  const paths = config.junction.manifests ?? [];
  const input: PlanInput =
    paths.length === 0
      ? await (await import('./clusterInput.ts')).readCluster(config, settings.nodeName, output)
      : { ...(await readManifests(config, output)), isCluster: false, serviceCidrs: [] };
  printProblems(input, output);
  const errors = input.problems.filter(({ severity }) => severity === 'error');
  const isApplied = options.output === 'text';
  const isUnread = errors.some(({ object }) => object === undefined);
  if (isUnread || (errors.length > 0 && isApplied)) {
    const count = errors.length === 1 ? 'an error' : `${errors.length} errors`;
    output.err(`junction: ${count} above, so nothing is planned\n`);
    return 1;
  }
  if (paths.length > 0 && errors.length === 0 && isNothing(input)) {
    const what = `no Service, EndpointSlice, Endpoints or Node in ${pathNames(config)}`;
    output.err(`junction: ${printableLine(what)}, so nothing is planned\n`);
    return 1;
  }
  const note = nodeNote(input, settings);
  if (note !== undefined) output.err(`${printableLine(note)}\n`);
  const plans = options.families.map((family) => planFamily(family, settings, input).plan);
  for (const line of plans.flatMap(planNotes)) output.err(`${printableLine(`warning: ${line}`)}\n`);
  output.out(printPlans(plans, settings, input, options));
  return errors.length > 0 ? 1 : 0;
}

/** In a pod the API server could be found without either; but a plan is for people, who say what they mean. */
export function needInput({ junction, clientConnection, master }: ValidConfig): void {
  if ((junction.manifests ?? []).length > 0 || clientConnection.kubeconfig !== '' || master !== '') return;
  throw new UsageError(
    [
      '--manifests and --kubeconfig are missing: name files with Services and EndpointSlices (- is standard input), or the kubeconfig of a cluster',
    ],
    'junction plan --help has examples',
  );
}
