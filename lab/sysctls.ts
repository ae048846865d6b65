import type { HostName, PodRouting } from './topology.ts';

export type Sysctls = Readonly<Record<string, string>>;

const ON_EVERY_DEVICE = ['all', 'default'] as const;

/** Without these the lab would not be what it says it is, so a failure to write one ends the start. */
export function neededSysctls(host: HostName): Sysctls {
  return { ...hostSysctls(), ...(isNode(host) && nodeSysctls(host)) };
}

/** Older kernels have these for the whole machine or not at all. */
export const WELCOME_SYSCTLS: Sysctls = {
  // Rejections are sent as ICMP. By default one per second goes to the same peer, and a rejected test looks like a drop.
  'net/ipv4/icmp_ratelimit': '0',
  'net/ipv6/icmp/ratelimit': '0',
  'net/ipv4/icmp_msgs_per_sec': '100000',
  'net/ipv4/icmp_msgs_burst': '100000',
};

/**
 * By default an SCTP handshake is repeated after three seconds. A rejection that comes back while connect() still holds
 * the socket is lost, as with TCP, and only the repeated one arrives.
 */
export const SCTP_SYSCTLS: Sysctls = { 'net/sctp/rto_min': '100', 'net/sctp/rto_initial': '300' };

/** Whether frames between two ports of a bridge pass iptables, as replies between neighbouring pods must after DNAT. */
export function bridgeSysctls(routing: PodRouting): Sysctls {
  const value = routing === 'bridged' ? '1' : '0';
  return { 'net/bridge/bridge-nf-call-iptables': value, 'net/bridge/bridge-nf-call-ip6tables': value };
}

export function isNode(host: HostName): host is 'node1' | 'node2' {
  return host === 'node1' || host === 'node2';
}

function hostSysctls(): Sysctls {
  return Object.fromEntries(
    ON_EVERY_DEVICE.flatMap((device) => [
      [`net/ipv6/conf/${device}/disable_ipv6`, '0'],
      // Duplicate address detection keeps a new address unusable for a second or two.
      [`net/ipv6/conf/${device}/accept_dad`, '0'],
      [`net/ipv6/conf/${device}/accept_ra`, '0'],
      [`net/ipv6/conf/${device}/accept_redirects`, '0'],
      [`net/ipv4/conf/${device}/accept_redirects`, '0'],
      [`net/ipv4/conf/${device}/rp_filter`, '0'],
    ]),
  );
}

function nodeSysctls(node: 'node1' | 'node2'): Sysctls {
  return {
    'net/ipv4/ip_forward': '1',
    'net/ipv6/conf/all/forwarding': '1',
    // A packet that leaves by the way it came makes the kernel redirect the sender to a shorter way, past the node's rules.
    // Written after ip_forward, which resets redirect settings.
    'net/ipv4/conf/all/send_redirects': '0',
    'net/ipv4/conf/default/send_redirects': '0',
    // Node ports on 127.0.0.1 leave the node with a loopback source until they are masqueraded.
    ...(node === 'node1' && { 'net/ipv4/conf/all/route_localnet': '1' }),
  };
}
