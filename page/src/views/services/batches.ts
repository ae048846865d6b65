/** Names of services in questions that are not too long. */

/** A question's headers have at most 8 KiB, and others are among them. */
const LONGEST = 4000;
const MOST = 100;

export function* serviceQuestions(services: Iterable<string>): Generator<string> {
  let query = '';
  let count = 0;
  for (const service of services) {
    const part = `service=${encodeURIComponent(service)}`;
    if (query.length + part.length > LONGEST || count === MOST) {
      yield `/v1/services?${query}`;
      query = '';
      count = 0;
    }
    query += query === '' ? part : `&${part}`;
    count++;
  }
  if (query !== '') yield `/v1/services?${query}`;
}
