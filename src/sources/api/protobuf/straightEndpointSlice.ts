/** EndpointSlices that are in order, straight into slim values. */
import type { EndpointSlice, SlicePort } from '../../../model/objects.ts';
import { type EndpointState, type PackedEndpoints, PackedSlice } from '../../../model/packedSlice.ts';
import type { Ip } from '../../../model/ip.ts';
import type { Interner } from '../interner.ts';
import { isLabel, isLabelValue, isSubdomain } from './names.ts';
import { bytesTag, fieldSet, type StraightRead, StraightReader, varintTag } from './straightReader.ts';

const METADATA = bytesTag(1);
const ENDPOINTS = bytesTag(2);
const PORTS = bytesTag(3);
const ADDRESS_TYPE = bytesTag(4);
const SLICE_FIELDS = fieldSet(1, 2, 3, 4);

const ADDRESSES = bytesTag(1);
const CONDITIONS = bytesTag(2);
const TARGET = bytesTag(4);
const NODE_NAME = bytesTag(6);
const ZONE = bytesTag(7);
const HINTS = bytesTag(8);
const ENDPOINT_FIELDS = fieldSet(1, 2, 4, 6, 7, 8);

const READY = varintTag(1);
const SERVING = varintTag(2);
const TERMINATING = varintTag(3);
const CONDITION_FIELDS = fieldSet(1, 2, 3);

const TARGET_KIND = bytesTag(1);
const TARGET_NAME = bytesTag(3);
const TARGET_FIELDS = fieldSet(1, 3);

const FOR_ZONES = bytesTag(1);
const FOR_NODES = bytesTag(2);
const HINT_FIELDS = fieldSet(1, 2);
const HINT_NAME = bytesTag(1);

const PORT_NAME = bytesTag(1);
const PORT_PROTOCOL = bytesTag(2);
const PORT_NUMBER = varintTag(3);
const PORT_FIELDS = fieldSet(1, 2, 3);

/** More than any controller puts into one slice; with more of anything it is read in the other way. */
const MOST = 1000;
const NO_HINTS: readonly string[] = [];

export function straightEndpointSlice(interner: Interner): StraightRead<EndpointSlice> {
  const reader = new StraightReader();
  const { wire } = reader;
  /** Three places for each. */
  let endpoints: PackedEndpoints[number][] = [];
  let hasIpv4 = false;
  let hasIpv6 = false;

  function readSlice(): EndpointSlice {
    endpoints = [];
    const ports: SlicePort[] = [];
    let addressType = '';
    hasIpv4 = false;
    hasIpv6 = false;
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === METADATA) reader.metadata(isSubdomain);
      else if (tag === ENDPOINTS) readEndpoint();
      else if (tag === PORTS) ports.push(readPort());
      else if (tag === ADDRESS_TYPE) addressType = wire.sharedText();
      else reader.other(tag, SLICE_FIELDS);
    }
    const { namespace, name, service, triggerTime } = reader;
    const family = addressType === 'IPv6' ? 'IPv6' : 'IPv4';
    const isOfFamily = family === 'IPv6' ? !hasIpv4 : !hasIpv6;
    const isSmall = endpoints.length <= 3 * MOST && ports.length <= MOST;
    if (addressType !== family || service === '' || !isOfFamily || !isSmall) reader.isInOrder = false;
    const slice = {
      namespace: interner.text(namespace),
      name,
      service,
      family,
      ports: interner.slicePorts(ports),
      triggerTime,
    } as const;
    return new PackedSlice(slice, endpoints);
  }

  function readEndpoint(): void {
    let ip: Ip | undefined;
    let nodeName: string | undefined;
    let zone: string | undefined;
    let pod: string | undefined;
    let kind = '';
    let ready = true;
    let serving = true;
    let terminating = false;
    let zoneHints = NO_HINTS;
    let nodeHints = NO_HINTS;
    const outer = wire.enter();
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === ADDRESSES) {
        if (ip === undefined) {
          ip = reader.ip();
          if (ip.includes(':')) hasIpv6 = true;
          else hasIpv4 = true;
        } else {
          wire.skip(tag & 7);
        }
      } else if (tag === CONDITIONS) {
        const endpointEnd = wire.enter();
        while (wire.at < wire.end) {
          const condition = wire.tag();
          if (condition === READY) ready = wire.bool();
          else if (condition === SERVING) serving = wire.bool();
          else if (condition === TERMINATING) terminating = wire.bool();
          else reader.other(condition, CONDITION_FIELDS);
        }
        wire.end = endpointEnd;
      } else if (tag === NODE_NAME) {
        const end = wire.valueEnd();
        if (end > wire.at && !isSubdomain(wire.bytes, wire.at, end)) reader.isInOrder = false;
        nodeName = interner.text(wire.sharedTextTo(end)) || undefined;
      } else if (tag === ZONE) {
        const end = wire.valueEnd();
        const isZone = isLabelValue(wire.bytes, wire.at, end);
        const text = wire.sharedTextTo(end);
        zone = isZone ? interner.text(text) : undefined;
      } else if (tag === TARGET) {
        const endpointEnd = wire.enter();
        while (wire.at < wire.end) {
          const part = wire.tag();
          if (part === TARGET_KIND) {
            kind = wire.sharedText();
          } else if (part === TARGET_NAME) {
            const end = wire.valueEnd();
            const isName = isSubdomain(wire.bytes, wire.at, end);
            const text = wire.asciiTo(end);
            pod = isName ? text : undefined;
          } else {
            reader.other(part, TARGET_FIELDS);
          }
        }
        wire.end = endpointEnd;
      } else if (tag === HINTS) {
        const endpointEnd = wire.enter();
        while (wire.at < wire.end) {
          const hint = wire.tag();
          if (hint === FOR_ZONES) zoneHints = withHint(zoneHints);
          else if (hint === FOR_NODES) nodeHints = withHint(nodeHints);
          else reader.other(hint, HINT_FIELDS);
        }
        wire.end = endpointEnd;
      } else {
        reader.other(tag, ENDPOINT_FIELDS);
      }
    }
    wire.end = outer;
    if (ip === undefined) {
      reader.isInOrder = false;
      ip = '' as Ip;
    }
    if (kind !== 'Pod') pod = undefined;
    const state: EndpointState =
      zone === undefined
        ? { nodeName, ready, serving, terminating, zoneHints, nodeHints }
        : { nodeName, ready, serving, terminating, zoneHints, nodeHints, zone };
    endpoints.push(ip, pod, interner.state(state));
  }

  function withHint(hints: readonly string[]): readonly string[] {
    const hint = readHint();
    return hints.length === 0 ? interner.single(hint) : interner.names([...hints, hint]);
  }

  function readHint(): string {
    let name = '';
    const outer = wire.enter();
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === HINT_NAME) name = wire.sharedText();
      else reader.other(tag, HINT_FIELDS & ~(1 << 2));
    }
    wire.end = outer;
    return name;
  }

  function readPort(): SlicePort {
    let name: string | undefined;
    let protocol: SlicePort['protocol'] = 'TCP';
    let port = 0;
    const outer = wire.enter();
    while (wire.at < wire.end) {
      const tag = wire.tag();
      if (tag === PORT_NAME) {
        const end = wire.valueEnd();
        if (end > wire.at && !isLabel(wire.bytes, wire.at, end)) reader.isInOrder = false;
        name = wire.sharedTextTo(end);
      } else if (tag === PORT_PROTOCOL) protocol = reader.protocol();
      else if (tag === PORT_NUMBER) port = reader.port();
      else reader.other(tag, PORT_FIELDS);
    }
    wire.end = outer;
    if (name === undefined || port === 0) reader.isInOrder = false;
    return { name: name ?? '', protocol, port };
  }

  return (bytes, from, end) => reader.read(bytes, readSlice, from, end);
}
