import { describe, expect, it } from 'vitest';
import { MemorySource } from './memorySource.ts';
import { recorder } from './recorder.ts';

const WEB =
  'kind: Service\nmetadata: {name: web, namespace: shop}\nspec: {clusterIP: 10.0.0.1, ports: [{port: 80}]}\n';

describe('a source in memory', () => {
  it('tells what it holds, then that it is synced, then what changes', async () => {
    const source = new MemorySource();
    const { events, told } = recorder();
    source.apply(WEB);
    await source.start(events);
    source.setNode({ name: 'n', ips: [], podCIDRs: [], zone: undefined, eligible: true });
    source.setNode({ name: 'n', ips: [], podCIDRs: [], zone: undefined, eligible: true });
    source.deleteNode('n');
    source.deleteNode('n');
    source.delete(WEB);
    await source.stop();
    source.apply(WEB);
    expect(told()).toEqual(['+ Service shop/web', 'synced', '+ Node n', '- Node n', '- Service shop/web']);
  });

  it('throws what is wrong with a text', () => {
    expect(() => new MemorySource().apply('kind: Node\nmetadata: {name: N}\n')).toThrow(
      'text:2:18: error: Node: metadata.name "N"',
    );
  });
});
