/**
 * A second table, for kernels that cannot protect ours: owned by our socket, so that no other program can change it, and the
 * kernel deletes it with the socket. `nft flush ruleset` leaves it alone, and as long as one chain that rewrites addresses is
 * there, the kernel goes on rewriting the packets of open connections.
 *
 * Its rules come after ours and see the first packets that ours did nothing with. While ours are there, that is none for a
 * service. While another program has removed them, the first packet of a new connection to a service is dropped, and the
 * client sends it again a second later.
 */
import { messageOf } from '../../../errors.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan, ServicePortPlans } from '../../../plan/types.ts';
import { RetryDelay } from '../../../proxy/report.ts';
import { hairpinsOf } from './compile.ts';
import { BACKSTOP_TABLE, NFT_CHAINS, ownerComment } from './names.ts';
import * as services from './ruleset.ts';
import type { TableOptions } from './ruleset.ts';
import { inSet, nftRule, toChain } from './table.ts';
import type { Element, Ruleset, Statement, TableSet } from './table.ts';
import { type Layout, WrittenTable, type WrittenTableOptions } from './written.ts';

interface BackstopOptions extends Pick<WrittenTableOptions, 'client' | 'now' | 'timeSlice'> {
  /** Called for each new reason why it is not there. */
  readonly onFailure?: (reason: string) => void;
}

export class Backstop {
  readonly #given: BackstopOptions;
  readonly #retry = new RetryDelay();
  /** `undefined`: it is not there. */
  #table: WrittenTable | undefined;
  #reason: string | undefined;

  constructor(given: BackstopOptions) {
    this.#given = given;
  }

  /** Another sync is worth it after this time. */
  get retryAfterMs(): number | undefined {
    return this.#retry.remainingMs(this.#given.now());
  }

  /** After each sync of our own table, which has these `ports`. `changed`: those that may be others than before; unset: all. */
  async sync(
    ports: ServicePortPlans,
    changed: readonly ServicePortId[] | undefined,
    options: TableOptions,
  ): Promise<void> {
    if (!this.#retry.isDue(this.#given.now())) return;
    try {
      const ids = changed ?? [...new Set([...(this.#table?.ports.keys() ?? []), ...ports.keys()])];
      const refused = await (this.#table?.change(ids, ports, options) ?? this.#create(ports, options));
      for (const error of refused.values()) throw error;
      this.#retry.succeeded();
      this.#reason = undefined;
    } catch (error) {
      await this.#fail(error);
    }
  }

  async #create(ports: ServicePortPlans, options: TableOptions): ReturnType<WrittenTable['writeAll']> {
    const table = new WrittenTable({ ...this.#given, name: BACKSTOP_TABLE, layout: LAYOUT }, options);
    await this.#given.client.commit([{ kind: 'deleteTable' }]); // ENOENT, mostly
    await table.commit([{ kind: 'addTable', isOwned: true }]);
    const refused = await table.writeAll(ports, new Map());
    await table.commit(table.hooks);
    table.isInForce = true;
    this.#table = table;
    return refused;
  }

  /** One that holds back what it should not would be worse than none. */
  async #fail(error: unknown): Promise<void> {
    this.#table = undefined;
    this.#retry.failed(this.#given.now());
    await this.#given.client.commit([{ kind: 'deleteTable' }]).catch(() => undefined);
    const reason = messageOf(error);
    if (reason !== this.#reason) this.#given.onFailure?.(reason);
    this.#reason = reason;
  }
}

const FRONTENDS: TableSet = {
  name: 'frontends',
  key: services.FRONTEND_FIELDS.address,
  comment: 'addresses of services that have endpoints',
};
const PORTS: TableSet = {
  name: 'ports',
  key: services.FRONTEND_FIELDS.nodePort,
  comment: 'node ports of services that have endpoints',
};
const HOLD_BACK = 'hold-back';
const { backstopDestination: destination, backstopSource: source } = services.PRIORITIES;

const LAYOUT: Layout = {
  compile: (port) => ({ elements: heldFrontends(port), counted: hairpinsOf(port), parts: [] }),
  parts: () => [],
  fixed: (options) => services.fixedElements({ ...options, serviceCidrs: [] }),
  ruleset: (_, options): Ruleset => {
    const drop: Statement = { kind: 'drop' };
    const toHeld = [nftRule(toChain(HOLD_BACK))];
    const held = [
      nftRule(inSet(services.FRONTEND.address, FRONTENDS.name), drop),
      nftRule(inSet(services.FRONTEND.nodePort, PORTS.name), ...services.toNodePorts(options), drop),
    ];
    return {
      sets: [FRONTENDS, PORTS, services.HAIRPIN_SET, ...services.nodePortSets(options.view)],
      chains: [
        { name: HOLD_BACK, rules: held },
        services.hooked(NFT_CHAINS.prerouting, destination, toHeld),
        services.hooked(NFT_CHAINS.output, destination, toHeld),
        // Also for what was sent on just before the rules were deleted.
        services.hooked(NFT_CHAINS.postrouting, source, services.masqueradeRules(options)),
      ],
    };
  },
};

/** Frontends that our rules send somewhere, for some clients at least. */
function heldFrontends({ frontends, protocol, name }: ServicePortPlan): readonly Element[] {
  const comment = ownerComment(name);
  return frontends
    .filter(({ routes }) => Object.values(routes).some(({ verdict }) => verdict === 'forward'))
    .map(({ address, port }) =>
      address === undefined
        ? { set: PORTS.name, key: { protocol, port }, comment }
        : { set: FRONTENDS.name, key: { address, protocol, port }, comment },
    );
}
