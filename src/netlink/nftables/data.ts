/** Values and verdicts, as expressions and elements carry them. */
import { type MessageWriter, attributesByType, malformed } from '../codec.ts';
import { type Verdict, decodeVerdict, writeVerdict } from './verdict.ts';

export const NFTA_DATA_VALUE = 1;
export const NFTA_DATA_VERDICT = 2;

export type NftData =
  | { readonly kind: 'value'; readonly value: Uint8Array }
  | { readonly kind: 'verdict'; readonly verdict: Verdict }
  /** A verdict that has no word here. */
  | { readonly kind: 'other' };

export function writeValue(writer: MessageWriter, type: number, value: Uint8Array): void {
  writer.nested(type, (data) => data.attribute(NFTA_DATA_VALUE, value));
}

export function writeVerdictData(writer: MessageWriter, type: number, verdict: Verdict): void {
  writer.nested(type, (data) => data.nested(NFTA_DATA_VERDICT, (inner) => writeVerdict(inner, verdict)));
}

export function decodeData(bytes: Uint8Array): NftData {
  const attributes = attributesByType(bytes);
  const value = attributes.get(NFTA_DATA_VALUE);
  if (value) return { kind: 'value', value };
  const encoded = attributes.get(NFTA_DATA_VERDICT);
  if (!encoded) throw malformed('data that is neither a value nor a verdict');
  const verdict = decodeVerdict(encoded);
  return verdict ? { kind: 'verdict', verdict } : { kind: 'other' };
}

export function decodeValue(bytes: Uint8Array): Uint8Array {
  const data = decodeData(bytes);
  if (data.kind !== 'value') throw malformed('a verdict where a value belongs');
  return data.value;
}
