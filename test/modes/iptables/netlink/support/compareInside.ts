/** Compares in a namespace of its own, where netlink sockets and programs run. */
import type { Family } from '../../../../../src/model/ip.ts';
import { inside } from '../../../../system/support/inside.ts';
import { openNamespace } from '../../../../system/support/namespace.ts';
import type { Compared, Comparison } from './samples.ts';

/** `folder`: where another version of iptables is. */
export async function compareInside(family: Family, compared: Compared, folder = ''): Promise<Comparison> {
  const source = `
    import { compareWithRestore } from './test/modes/iptables/netlink/support/samples.ts';
    process.env.PATH = '${folder}:' + process.env.PATH;
    console.log(JSON.stringify(compareWithRestore('${family}', ${JSON.stringify(compared)})));`;
  const namespace = await openNamespace();
  try {
    return (await inside(namespace, 'compare-rules', source)) as Comparison;
  } finally {
    await namespace.close();
  }
}
