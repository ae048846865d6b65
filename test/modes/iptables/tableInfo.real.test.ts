/** The legacy variant's tables tell in one system call that something in them changed. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { inside, output } from '../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../system/support/namespace.ts';

interface Info {
  readonly id: string;
  readonly rules: number;
}

describe('in a namespace', () => {
  let namespace: Namespace;
  beforeEach(async (context) => {
    requireNamespaces(context);
    namespace = await openNamespace();
  });
  afterEach(() => namespace.close());

  async function read(family: string): Promise<Info> {
    const source = `import { readTableInfo } from './src/modes/iptables/tableInfo.ts';
      console.log(JSON.stringify(readTableInfo('${family}', ['filter', 'nat'])));`;
    return (await inside(namespace, 'info', source)) as Info;
  }

  it.each([
    ['IPv4', 'iptables-legacy'],
    ['IPv6', 'ip6tables-legacy'],
  ])(
    '%s: the same while nothing changes; fewer rules after a deletion; not the same after any change',
    async (family, program) => {
      const iptables = (...args: readonly string[]): Promise<string> =>
        output(namespace, program, '-w', '-t', 'nat', ...args);
      await iptables('-N', 'KUBE-SERVICES');
      await iptables('-A', 'PREROUTING', '-j', 'KUBE-SERVICES');
      const before = await read(family);
      expect(await read(family)).toEqual(before);
      await iptables('-D', 'PREROUTING', '-j', 'KUBE-SERVICES');
      const after = await read(family);
      expect(after.rules).toBe(before.rules - 1);
      await iptables('-A', 'OUTPUT', '-j', 'KUBE-SERVICES');
      const moved = await read(family);
      expect(moved.rules).toBe(before.rules);
      expect(moved.id).not.toBe(before.id);
    },
  );
});
