/** Which encoding an answer has, by the request's `Accept` and by what the server has. */
export type ServedEncoding = 'protobuf' | 'json';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/*', '*/*']);

/** Of what is accepted equally the first counts, as with the real one. Nothing: 406. */
export function negotiate(accept: string | undefined, hasProtobuf: boolean): ServedEncoding | undefined {
  const ranges = (accept ?? '*/*').split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
    return { type, q: Number(q) };
  });
  for (const { type } of ranges.sort((a, b) => b.q - a.q)) {
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
