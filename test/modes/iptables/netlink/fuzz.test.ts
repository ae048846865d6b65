/** Bytes that no kernel would send, for the decoder of iptables' rules: every match and target, cut, flipped and overwritten. */
import type { Family } from '../../../../src/model/ip.ts';
import { decodeIptablesRule } from '../../../../src/modes/iptables/netlink/decodeRule.ts';
import { RuleEncoder } from '../../../../src/modes/iptables/netlink/encodeRule.ts';
import { ruleKey } from '../../../../src/modes/iptables/rules/print.ts';
import { type Decoder, fuzz } from '../../../netlink/support/fuzz.ts';
import { SAMPLES, toIpv6 } from '../rules/rules.ts';
import { expressionsOf } from './support/expressionsOf.ts';

const SET_NUMBERS = { setIndex: () => 7, setName: () => 'some-set' };

function decoders(family: Family): readonly Decoder[] {
  const encoder = new RuleEncoder({ family, ...SET_NUMBERS });
  const ofIpv6 = SAMPLES.map(toIpv6).filter(({ text }) => SAMPLES.every((sample) => sample.text !== text));
  const samples = family === 'IPv6' ? ofIpv6 : SAMPLES;
  return samples.flatMap(({ text, rule }) => {
    const encoded = encoder.encode(rule);
    const decode = (bytes: Uint8Array): string =>
      ruleKey(decodeIptablesRule(expressionsOf(bytes), { family, ...SET_NUMBERS }).rule);
    return encoded ? [{ name: `${family}: ${text}`, decode, golden: encoded.bytes.slice() }] : [];
  });
}

fuzz([...decoders('IPv4'), ...decoders('IPv6')]);
