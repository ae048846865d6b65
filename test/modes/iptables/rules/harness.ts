/** A cluster in text, a writer, and a kernel in memory behind it. */
import { IptablesRules } from '../../../../src/modes/iptables/reconcile.ts';
import type { LookResult, SyncAttempt, SyncReport } from '../../../../src/proxy/report.ts';
import type {
  CompileOptions,
  LayoutName,
  StaticOptions,
} from '../../../../src/modes/iptables/rules/fragment.ts';
import { LAYOUTS } from '../../../../src/modes/iptables/rules/layouts/index.ts';
import { hash16 } from '../../../../src/modes/iptables/rules/names.ts';
import type { Touched } from '../../../../src/modes/iptables/rules/touched.ts';
import type { Family } from '../../../../src/model/ip.ts';
import type { ServicePortId } from '../../../../src/model/serviceTracker.ts';
import type { NodeView, Plan } from '../../../../src/plan/types.ts';
import type { ChainReader } from '../../../../src/modes/iptables/rules/chainReader.ts';

import { systemClock } from '../../../../src/time/systemClock.ts';
import { TimeSlice } from '../../../../src/time/timeSlice.ts';
import { Cluster } from '../../../plan/cluster.ts';
import { VIEW } from '../../../plan/given.ts';
import { EMPTY, FakeKernel, meaningOf } from './fakeKernel.ts';

export const OPTIONS: StaticOptions = {
  nodePortIps: 'all',
  masqueradeMark: 0x4000,
  randomFully: true,
  dropInvalid: true,
  nfacct: { invalidDropped: false, localhostNodePorts: false },
};

export function compileOptions(plan: Plan, options: Partial<CompileOptions> = {}): CompileOptions {
  return { ...OPTIONS, family: plan.family, view: plan.view, endpointComments: true, ...options };
}

export interface HarnessOptions {
  readonly layout?: LayoutName;
  readonly kernel?: FakeKernel;
  readonly cluster?: Cluster;
  readonly view?: NodeView;
  readonly family?: Family;
  readonly options?: Partial<StaticOptions>;
  /** By which chains are read; by default what the kernel prints. */
  readonly reader?: (kernel: FakeKernel) => ChainReader;
  readonly now?: () => number;
}

export class Harness {
  readonly kernel: FakeKernel;
  readonly cluster: Cluster;
  readonly layout: LayoutName;
  readonly #writer: IptablesRules;
  #options: StaticOptions;
  readonly #unwritten = new Set<ServicePortId>();

  constructor(options: HarnessOptions = {}) {
    this.kernel = options.kernel ?? new FakeKernel();
    this.cluster = options.cluster ?? new Cluster(options.view ?? VIEW, options.family ?? 'IPv4');
    this.layout = options.layout ?? 'current';
    this.#writer = new IptablesRules(LAYOUTS[this.layout], this.kernel, {
      wake: () => this.kernel.wake(),
      reader: options.reader?.(this.kernel),
      now: options.now ?? (() => 0),
    });
    this.#options = { ...OPTIONS, ...options.options };
  }

  /** What the last sync set out to do. */
  get attempt(): SyncAttempt {
    return this.#writer.attempt;
  }

  /** Tells the cluster these lines, and syncs. What a failed sync left undone is tried again by the next. */
  async sync(...lines: readonly string[]): Promise<SyncReport> {
    this.cluster.tell(...lines);
    for (const id of this.cluster.takeDirty()) this.#unwritten.add(id);
    this.kernel.forget();
    const report = await this.#writer.sync(this.cluster.planner, this.#unwritten, this.#options);
    this.#unwritten.clear();
    return report;
  }

  /** Planned, and left to a later sync. */
  plan(...lines: readonly string[]): void {
    this.cluster.tell(...lines);
    for (const id of this.cluster.takeDirty()) this.#unwritten.add(id);
  }

  /** Writes these alone. */
  syncOnly(ids: readonly ServicePortId[]): Promise<SyncReport> {
    this.kernel.forget();
    return this.#writer.sync(this.cluster.planner, ids, this.#options);
  }

  verify(): Promise<LookResult> {
    return this.#writer.verify(new TimeSlice(systemClock));
  }

  requestFull(): void {
    this.#writer.requestFull();
  }

  noteForeign(touched: Touched): readonly string[] {
    return this.#writer.noteForeign(touched);
  }

  requestJumps(): void {
    this.#writer.requestJumps();
  }

  /** The node has other addresses now. */
  setNodePortIps(nodePortIps: StaticOptions['nodePortIps']): void {
    this.#options = { ...this.#options, nodePortIps };
  }

  async syncFull(): Promise<SyncReport> {
    this.requestFull();
    return this.sync();
  }

  /** Junction stops and starts again: same cluster, same kernel, no memory. */
  restarted(options: Pick<HarnessOptions, 'layout' | 'options'> = {}): Harness {
    return new Harness({
      kernel: this.kernel,
      cluster: this.cluster,
      layout: options.layout ?? this.layout,
      options: { ...this.#options, ...options.options },
    });
  }

  /** What a kernel would have that never had anything else. */
  async fromScratch(text: string = EMPTY): Promise<readonly string[]> {
    const fresh = new Harness({
      kernel: new FakeKernel(text),
      cluster: this.cluster,
      layout: this.layout,
      options: this.#options,
    });
    await fresh.sync();
    return meaningOf(fresh.kernel.tables);
  }

  get meaning(): readonly string[] {
    return meaningOf(this.kernel.tables);
  }
}

/** `chain('SVC', 'shop/web:http')`, `chain('SEP', 'shop/web:http', '10.244.0.1:80')` */
export function chainName(kind: string, port: string, endpoint = '', protocol = 'tcp'): string {
  return `KUBE-${kind}-${hash16(port + protocol + endpoint)}`;
}
