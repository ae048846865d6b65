/** Every kind of rule, as `iptables-nft-restore` writes it and as it is encoded: the same bytes, and back the same rule. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

describe.each(FAMILIES)('%s', (family) => {
  it('is byte for byte what the kernel shows of a restore', async () => {
    const source = `
      import { sampleRows } from './test/modes/iptables/netlink/support/samples.ts';
      console.log(JSON.stringify(sampleRows('${family}')));`;
    const rows = await inside(namespace, 'encode-samples', source);
    expect(rows).toMatchObject({ length: expect.any(Number) });
    for (const { encoded, decoded, ...expected } of rows as Record<string, unknown>[])
      expect({ text: expected['text'], encoded, decoded }).toEqual({
        text: expected['text'],
        encoded: expected['kernel'],
        decoded: expected['saved'],
      });
  });
});
