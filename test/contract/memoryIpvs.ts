/** The IPVS mode on sets, virtual servers and the device in memory, and the rules beside them. */
import { deepEqual } from '../../src/model/equal.ts';
import type { Family, Ip } from '../../src/model/ip.ts';
import { TablesReader } from '../../src/modes/iptables/tablesReader.ts';
import { IpvsReader } from '../../src/modes/ipvs/inspect.ts';
import { ipvsLayout } from '../../src/modes/ipvs/rules/rules.ts';
import { walkIpvs } from '../../src/modes/ipvs/rules/walk.ts';
import type { WalkOutcome, WalkResult } from '../../src/modes/kernelRules.ts';
import { runSteps } from '../../src/modes/walkRunner.ts';
import type { Plan } from '../../src/plan/types.ts';
import type { KernelWriter } from '../../src/proxy/proxier.ts';
import type { MemoryTables } from '../modes/iptables/rules/tables.ts';
import { walkedTables } from '../modes/iptables/rules/textWalk.ts';
import { printSets, printWorld } from '../modes/ipvs/rules/cluster.ts';
import { FakeIpvsKernel } from '../modes/ipvs/rules/fakeKernel.ts';
import { printWalk } from '../scenarios/expectations.ts';
import { printRow, type Subject } from '../scenarios/packets.ts';
import { NODE1, node1Addresses } from '../scenarios/scenario.ts';
import { type Faults, faultyIpvs, faultyRunner } from './faults.ts';
import { Tampered } from './memoryIptables.ts';
import { MemorySide } from './memorySide.ts';
import { ALL_TABLES, IPVS_SETTINGS, ipvsMode, openIptables, withoutLoopback } from './modes.ts';
import type { Deed } from './node.ts';

/** IPVS looks at drained endpoints so often. */
const DRAIN_MS = 31_000;

export class IpvsSide extends MemorySide {
  readonly mechanism = 'ipvs';
  readonly #rules = new Tampered(ipvsLayout);
  readonly #kernel: FakeIpvsKernel;
  /** Each is of a virtual server and one of its real servers. */
  readonly #connections: [server: string, destination: string][] = [];

  constructor(family: Family) {
    super(family);
    this.#kernel = new FakeIpvsKernel(family, this.#rules.iptables);
  }

  protected async open(nodeIps: () => readonly Ip[], faults: Faults): Promise<KernelWriter> {
    const runner = faultyRunner(this.#rules.iptables.runner, faults);
    const iptables = await openIptables(this.family, runner);
    const client = faultyIpvs(this.#kernel, faults);
    return ipvsMode({ iptables, client, clock: this.clock }, nodeIps);
  }

  async reader(): Promise<IpvsReader> {
    const { family } = this;
    const kernel = this.#kernel;
    return new IpvsReader({
      family,
      tables: new TablesReader({
        client: await openIptables(family, this.#rules.iptables.runner),
        tables: () => ALL_TABLES,
        generation: () => 1,
        bridges: () => new Set(['cni0']),
      }),
      client: kernel,
      settings: { ...IPVS_SETTINGS, randomFully: true },
      nodeIps: () => withoutLoopback(node1Addresses(family)),
    });
  }

  async packets(rows: readonly Subject[], { plan }: { readonly plan: Plan }): Promise<readonly string[]> {
    const seen: string[] = [];
    for (const row of rows) seen.push(await walkedIpvs(this.#kernel, this.#rules.iptables.tables, plan, row));
    return seen;
  }

  get state(): readonly string[] {
    const lines = [...printSets(this.#kernel), ...printWorld(this.#kernel), ...this.#rules.meaning];
    return lines.filter((line) => !line.includes('9.9.9.9'));
  }

  protected fresh(): MemorySide {
    return new IpvsSide(this.family);
  }

  async perform(deed: Deed): Promise<boolean> {
    const kernel = this.#kernel;
    if (deed.kind === 'deleteService') {
      for (const [key, { attributes }] of kernel.servers)
        if (attributes.ip === deed.clusterIP) kernel.servers.delete(key);
      kernel.device?.addresses.delete(deed.clusterIP);
      return true;
    }
    this.#rules[deed.kind]();
    if (deed.kind === 'flush') {
      kernel.servers.clear();
      for (const { entries } of kernel.sets.values()) entries.clear();
      kernel.device = undefined;
    }
    return true;
  }

  override async missingForeign(): Promise<readonly string[]> {
    return this.#rules.missing;
  }

  override async openConnections(): Promise<void> {
    for (const [server, { destinations }] of this.#kernel.servers)
      for (const [key, each] of destinations) {
        each.connections = 1;
        this.#connections.push([server, key]);
      }
  }

  override async brokenConnections(): Promise<readonly string[]> {
    const { servers } = this.#kernel;
    return this.#connections
      .filter(([server, key]) => servers.get(server)?.destinations.get(key) === undefined)
      .map(([server, key]) => `${server} ${key}`);
  }

  override async endConnections(): Promise<void> {
    this.#connections.length = 0;
    for (const { destinations } of this.#kernel.servers.values())
      for (const each of destinations.values()) each.connections = 0;
    await this.clock.advance(DRAIN_MS);
    const { world, writer } = this.started ?? {};
    if (world?.plan) await writer?.sync(world.plan, []);
  }
}

/** In the words of a row. What cannot be said in them is wrong. */
async function walkedIpvs(
  kernel: FakeIpvsKernel,
  tables: MemoryTables,
  { view }: Plan,
  row: Subject,
): Promise<string> {
  const host = { ...NODE1, nodeIp: view.nodeIp };
  const walk = (remembers: (entry: string) => boolean): Promise<WalkResult> => {
    const place = { viaBridge: row.packet.inInterface === 'cni0', remembers };
    return runSteps(walkIpvs(kernel, walkedTables(tables), place, row.packet, host));
  };
  const first = await walk(() => false);
  const isDelivered =
    first.outcomes.some(({ kind }) => kind === 'pass') &&
    kernel.device?.addresses.has(row.packet.destination) === true;
  if (isDelivered) return printRow(row, 'delivered to the node itself');
  for (const outcome of first.outcomes.filter(({ learned }) => learned.length > 0))
    if (!(await isKept(outcome))) return printRow(row, 'forgets its client');
  return printWalk(row, first);

  async function isKept(outcome: WalkOutcome): Promise<boolean> {
    const { outcomes } = await walk((entry) => outcome.learned.some(({ name }) => name === entry));
    return outcomes.length === 1 && deepEqual(outcomes[0], { ...outcome, probability: 1, byAffinity: true });
  }
}
