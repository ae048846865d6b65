/** The query of a list or watch, checked as kube-apiserver 1.36 checks it; what it does not know it ignores. */
import { badRequest, invalid, StatusError } from './status.ts';

export interface ListOptions {
  readonly watch: boolean;
  readonly limit: number;
  readonly continueToken: string;
  /** '' when not given. */
  readonly resourceVersion: string;
  readonly match: string;
  readonly sendInitialEvents: boolean;
  readonly bookmarks: boolean;
  readonly timeoutSeconds: number;
}

/** What the server picks when the client does not say. */
const DEFAULT_TIMEOUT_SECONDS = 1800;

/** `hasStreams`: the feature WatchList is on. */
export function readListOptions(query: ReadonlyMap<string, string>, hasStreams: boolean): ListOptions {
  checkTimeout(query.get('timeout') ?? '');
  const options: ListOptions = {
    watch: flag(query, 'watch'),
    limit: number(query, 'limit'),
    continueToken: query.get('continue') ?? '',
    resourceVersion: query.get('resourceVersion') ?? '',
    match: query.get('resourceVersionMatch') ?? '',
    sendInitialEvents: flag(query, 'sendInitialEvents'),
    bookmarks: flag(query, 'allowWatchBookmarks'),
    timeoutSeconds: number(query, 'timeoutSeconds') || DEFAULT_TIMEOUT_SECONDS,
  };
  const { resourceVersion } = options;
  if (!/^\d*$/.test(resourceVersion)) {
    const message = `Invalid value: "${resourceVersion}": strconv.ParseUint: parsing "${resourceVersion}": invalid syntax`;
    if (options.watch) throw new StatusError(500, { message: `resourceVersion: ${message}` });
    throw badRequest(`invalid resource version: resourceVersion: ${message}`);
  }
  if (options.match !== '' && options.match !== 'Exact' && options.match !== 'NotOlderThan') {
    throw invalid('resourceVersionMatch', `Unsupported value: "${options.match}"`);
  }
  if (options.watch) checkWatch(options, hasStreams);
  else checkList(options);
  return options;
}

function checkList({ match, resourceVersion, continueToken, sendInitialEvents }: ListOptions): void {
  if (match !== '' && resourceVersion === '') {
    throw invalid(
      'resourceVersionMatch',
      'resourceVersionMatch is forbidden unless resourceVersion is provided',
    );
  }
  if (match !== '' && continueToken !== '') {
    throw invalid('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided');
  }
  if (match === 'Exact' && resourceVersion === '0') {
    throw invalid(
      'resourceVersionMatch',
      'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    );
  }
  if (sendInitialEvents) throw invalid('sendInitialEvents', 'sendInitialEvents is forbidden for list');
  if (continueToken !== '' && resourceVersion !== '' && resourceVersion !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
}

/** A limit or a continue token on a watch is ignored. */
function checkWatch({ match, sendInitialEvents }: ListOptions, hasStreams: boolean): void {
  if (!sendInitialEvents) {
    if (match === '') return;
    throw invalid(
      'resourceVersionMatch',
      'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    );
  }
  if (!hasStreams) {
    throw invalid(
      'sendInitialEvents',
      'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
    );
  }
  if (match !== 'NotOlderThan') {
    throw invalid(
      'resourceVersionMatch',
      'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
    );
  }
}

/** client-go sends it with every request. */
function checkTimeout(text: string): void {
  if (text === '' || /^(?:\d+(?:\.\d+)?(?:ns|us|ms|s|m|h))+$/.test(text)) return;
  throw badRequest(`invalid timeout specified in the request URL - time: invalid duration "${text}"`);
}

/** As Go's conversion of queries: everything but `0` and `false` is true, even nothing after the `=`. */
export function flag(query: ReadonlyMap<string, string>, name: string): boolean {
  const value = query.get(name);
  return value !== undefined && value !== '0' && value.toLowerCase() !== 'false';
}

/** Below 0 means none, as in the real one. */
function number(query: ReadonlyMap<string, string>, name: string): number {
  const value = query.get(name) ?? '0';
  if (!/^[+-]?\d+$/.test(value)) throw badRequest(`strconv.ParseInt: parsing "${value}": invalid syntax`);
  return Math.max(Number(value), 0);
}
