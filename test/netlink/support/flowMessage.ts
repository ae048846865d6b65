/** A flow as the kernel lists it. */
import { HEADER_BYTES, MessageWriter } from '../../../src/netlink/codec.ts';
import { decodeFlow, type KernelFlow } from '../../../src/netlink/conntrack.ts';
import { ipBytes, PROTOCOL_NUMBERS, type TransportProtocol } from '../../../src/netlink/inet.ts';
import { type FlowFilter, flowTest } from '../../../src/netlink/worker/flowFilter.ts';
import { runToEnd } from '../../../src/time/timeSlice.ts';
import type { Ip } from '../../../src/model/ip.ts';
import type { ScanEnd } from '../../../src/netlink/channel.ts';
import type { NetlinkEnd } from '../../../src/netlink/socket.ts';

export interface ListedFlow extends Omit<KernelFlow, 'protocol' | 'original'> {
  readonly protocol: TransportProtocol;
}

const CT_NEW = 0x0100;
const CLIENT_PORT = 40_000;

/** With its header. */
export function flowMessage(flow: ListedFlow): Uint8Array {
  const writer = new MessageWriter();
  const { protocol, destination, destinationPort, answerer, answererPort, id } = flow;
  const isV6 = destination.includes(':');
  const client = ipBytes((isV6 ? 'fd00::1' : '10.0.0.1') as Ip);
  const tuple = (type: number, source: Uint8Array, target: Uint8Array, ports: readonly number[]): void => {
    writer.nested(type, (inner) => {
      inner.nested(1, (ips) => {
        ips.attribute(isV6 ? 3 : 1, source).attribute(isV6 ? 4 : 2, target);
      });
      inner.nested(2, (proto) => {
        proto.integer(1, 1, PROTOCOL_NUMBERS[protocol], false);
        for (const [index, port] of ports.entries()) proto.integer(2 + index, 2, port, false);
      });
    });
  };
  writer.message({ type: CT_NEW, flags: 0, sequence: 1 }, () => {
    writer.raw(Uint8Array.of(isV6 ? 10 : 2, 0, 0, 0));
    tuple(1, client, ipBytes(destination), [CLIENT_PORT, destinationPort]);
    tuple(2, ipBytes(answerer), client, [answererPort, CLIENT_PORT]);
    writer.integer(12, 4, id, false);
  });
  return writer.finish().slice();
}

/** What a scan of these flows returns. */
export function scanOf(
  flows: readonly ListedFlow[],
  filter: FlowFilter,
  end: NetlinkEnd = { kind: 'answered', interrupted: false },
): { readonly flows: readonly KernelFlow[]; readonly end: ScanEnd } {
  const test = runToEnd(flowTest(filter));
  const passed = flows.flatMap((flow) => {
    const message = test.take(flowMessage(flow));
    return (message && decodeFlow(message.subarray(HEADER_BYTES))) ?? [];
  });
  return { flows: passed, end: { ...end, examined: test.examined } };
}
