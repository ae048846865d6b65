/** The ways to the kernel, with a clock on each. */
import type { IpvsChannels } from '../../src/modes/ipvs/client.ts';
import type { NetlinkChannel } from '../../src/netlink/channel.ts';
import { type CommandRunner, run } from '../../src/system/processes.ts';
import type { SyncTime } from './messages.ts';

export class TimedClients {
  readonly #spent = { sets: 0, servers: 0, addresses: 0, rules: 0 };

  channels({ netfilter, generic, route }: IpvsChannels): IpvsChannels {
    return {
      netfilter: this.#channel(netfilter, 'sets'),
      generic: this.#channel(generic, 'servers'),
      route: this.#channel(route, 'addresses'),
    };
  }

  readonly runner: CommandRunner = (argv, options) => this.#timed('rules', () => run(argv, options));

  /** How long something took, and how much of that was spent where. */
  async time(work: () => Promise<unknown>): Promise<SyncTime> {
    const before = { ...this.#spent };
    const started = performance.now();
    await work();
    const total = performance.now() - started;
    const { sets, servers, addresses, rules } = this.#spent;
    return {
      total,
      sets: sets - before.sets,
      servers: servers - before.servers,
      addresses: addresses - before.addresses,
      rules: rules - before.rules,
    };
  }

  /** The same one, with a clock on it. */
  #channel(channel: NetlinkChannel, where: Place): NetlinkChannel {
    const apply = channel.apply.bind(channel);
    const request = channel.request.bind(channel);
    const list = channel.list.bind(channel);
    channel.apply = (changes) => this.#timed(where, () => apply(changes));
    channel.request = (asked) => this.#timed(where, () => request(asked));
    channel.list = (asked, what, decode) => this.#timed(where, () => list(asked, what, decode));
    return channel;
  }

  async #timed<T>(where: Place, work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    try {
      return await work();
    } finally {
      this.#spent[where] += performance.now() - started;
    }
  }
}

type Place = Exclude<keyof SyncTime, 'total'>;
