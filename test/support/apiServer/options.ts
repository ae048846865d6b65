/** The query of a list or watch, checked as kube-apiserver 1.36 checks it; what it does not know is refused here. */
import { badRequest, invalid } from './status.ts';

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

const KNOWN = new Set([
  'watch',
  'limit',
  'continue',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'allowWatchBookmarks',
  'timeoutSeconds',
  'labelSelector',
  'fieldSelector',
]);

/** What the server picks when the client does not say. */
const DEFAULT_TIMEOUT_SECONDS = 1800;

export function readListOptions(query: ReadonlyMap<string, string>, streamsLists: boolean): ListOptions {
  for (const name of query.keys()) if (!KNOWN.has(name)) throw badRequest(`unknown parameter ${name}`);
  const options: ListOptions = {
    watch: flag(query, 'watch'),
    limit: number(query, 'limit') ?? 0,
    continueToken: query.get('continue') ?? '',
    resourceVersion: query.get('resourceVersion') ?? '',
    match: query.get('resourceVersionMatch') ?? '',
    sendInitialEvents: flag(query, 'sendInitialEvents'),
    bookmarks: flag(query, 'allowWatchBookmarks'),
    timeoutSeconds: number(query, 'timeoutSeconds') ?? DEFAULT_TIMEOUT_SECONDS,
  };
  if (!/^\d*$/.test(options.resourceVersion)) {
    throw badRequest(`Invalid value: "${options.resourceVersion}": strconv.ParseUint: parsing failed`);
  }
  if (options.match !== '' && options.match !== 'Exact' && options.match !== 'NotOlderThan') {
    throw invalid('resourceVersionMatch', `Unsupported value: "${options.match}"`);
  }
  if (options.watch) checkWatch(options, streamsLists);
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

function checkWatch(options: ListOptions, streamsLists: boolean): void {
  const { match, sendInitialEvents, limit, continueToken, resourceVersion } = options;
  if (limit !== 0 || continueToken !== '') throw badRequest('a watch has no pages');
  if (!sendInitialEvents) {
    if (match !== '') {
      throw invalid(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      );
    }
    // The real server takes these for "from somewhere about now"; a reflector that asks so loses events.
    if (resourceVersion === '' || resourceVersion === '0') throw badRequest('a watch from no version');
    return;
  }
  if (!streamsLists) {
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

function flag(query: ReadonlyMap<string, string>, name: string): boolean {
  const value = query.get(name);
  if (value !== undefined && value !== 'true' && value !== 'false') throw badRequest(`bad ${name}: ${value}`);
  return value === 'true';
}

function number(query: ReadonlyMap<string, string>, name: string): number | undefined {
  const value = query.get(name);
  if (value !== undefined && !/^\d+$/.test(value)) throw badRequest(`bad ${name}: ${value}`);
  return value === undefined ? undefined : Number(value);
}
