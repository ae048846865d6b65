import type { Host } from '../../../lab/host.ts';

/** Does something while the daemon whose log this is stands still, so that it sees it only afterwards. */
export async function whilePaused(node: Host, log: string, work: () => Promise<void>): Promise<void> {
  const pid = [...log.matchAll(/^I\S+ \S+ +(\d+) .*"Starting Junction"/gm)].at(-1)?.[1];
  if (pid === undefined) throw new Error(`nobody has started: ${log}`);
  await node.run(['kill', '-STOP', pid]);
  try {
    await work();
  } finally {
    await node.run(['kill', '-CONT', pid]);
  }
}
