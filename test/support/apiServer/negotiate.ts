/** Which encoding an answer has, by the request's `Accept` and by what the server has. */
export type ServedEncoding = 'protobuf' | 'json';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/*', '*/*']);

/** Of what is accepted the first counts, as with the real one. Nothing: 406. */
export function negotiate(accept: string | undefined, hasProtobuf: boolean): ServedEncoding | undefined {
  for (const range of (accept ?? '*/*').split(',')) {
    const type = range.trim();
    if (type === PROTOBUF && hasProtobuf) return 'protobuf';
    if (JSON_TYPES.has(type)) return 'json';
  }
  return undefined;
}

/** With every answer about objects. */
export function head(encoding: ServedEncoding, isWatch = false): Readonly<Record<string, string>> {
  const protobuf = isWatch ? `${PROTOBUF};stream=watch` : PROTOBUF;
  return {
    'cache-control': 'no-cache, private',
    'content-type': encoding === 'protobuf' ? protobuf : 'application/json',
  };
}
