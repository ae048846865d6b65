/** The kinds that a manifest may hold, alone or in lists. */
import {
  type Kind,
  kindOf,
  projectEndpointSlice,
  projectEndpoints,
  projectNode,
  projectService,
} from '../../model/project/index.ts';
import type { Projection } from '../../model/problem.ts';
import type { WorldObject } from '../world.ts';

/** The kind and version that the items of a list have unless they say otherwise; '' for a mixed List. */
export function listedKind(
  raw: unknown,
): { readonly kind: string; readonly apiVersion: unknown } | undefined {
  if (typeof raw !== 'object' || raw === null) return undefined;
  const { kind, apiVersion } = raw as { readonly kind?: unknown; readonly apiVersion?: unknown };
  if (kind === 'List') return { kind: '', apiVersion: undefined };
  const item = typeof kind === 'string' && kind.endsWith('List') ? kind.slice(0, -'List'.length) : '';
  return kindOf({ kind: item, apiVersion }) && { kind: item, apiVersion };
}

export function withDefaultKind(
  item: unknown,
  { kind, apiVersion }: { kind: string; apiVersion: unknown },
): unknown {
  if (kind === '' || typeof item !== 'object' || item === null || Object.hasOwn(item, 'kind')) return item;
  return { kind, apiVersion, ...item };
}

export function projectKind(kind: Kind, raw: unknown): Projection<readonly WorldObject[]> {
  switch (kind) {
    case 'Service':
      return mapValue(projectService(raw), (value) => [{ kind, value }]);
    case 'EndpointSlice':
      return mapValue(projectEndpointSlice(raw), (value) => [{ kind, value }]);
    case 'Endpoints':
      return mapValue(projectEndpoints(raw), (slices) =>
        slices.map((value) => ({ kind: 'EndpointSlice', value })),
      );
    default:
      return mapValue(projectNode(raw), (value) => [{ kind, value }]);
  }
}

function mapValue<T, U>(projection: Projection<T>, change: (value: T) => U): Projection<U> {
  return projection.kind === 'object' ? { ...projection, value: change(projection.value) } : projection;
}
