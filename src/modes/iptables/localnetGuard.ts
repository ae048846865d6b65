/** Writes the guard of 127.0.0.0/8 by itself, before route_localnet is set and long before the first sync. */
import { printStep } from './rules/edit.ts';
import type { Layout } from './rules/fragment.ts';
import { guardStep } from './rules/chainEdits.ts';
import { parseSave } from './rules/parse.ts';
import type { IptablesClient } from './client.ts';

export async function writeLocalnetGuard(client: IptablesClient, layout: Layout): Promise<void> {
  const state = parseSave(await client.save('filter', { counters: false }));
  const step = guardStep(state, layout);
  if (step) await client.restore(step.table, printStep(step), { flush: false, counters: true });
}
