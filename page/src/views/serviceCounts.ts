/** Connections and flows go on without events: they are read now and then while somebody looks. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { EndpointRow, ServicePortExplanation } from '../../../src/explain/types.ts';
import { apiPath, askJson } from '../api.ts';
import { live } from '../live.ts';
import { withCounts } from './serviceCounting.ts';

const EVERY_MS = 5000;

export function useCounts(
  port: ServicePortExplanation,
  service: string,
  isOn: boolean,
): ServicePortExplanation {
  const [counts, setCounts] = useState<readonly EndpointRow[]>([]);
  const isCounted =
    isOn &&
    port.endpoints.some(({ connections, rate, flows }) => (connections ?? rate ?? flows) !== undefined);
  useEffect(() => {
    if (!isCounted) return undefined;
    const ended = new AbortController();
    const timer = setInterval(() => {
      if (document.hidden || live.state.kind !== 'connected') return;
      askJson<readonly EndpointRow[]>(apiPath(['endpoints', ...service.split('/')]), ended.signal).then(
        setCounts,
        // The answer of the whole view says what is wrong.
        () => undefined,
      );
    }, EVERY_MS);
    return () => {
      ended.abort();
      clearInterval(timer);
    };
  }, [service, isCounted]);
  return useMemo(() => withCounts(port, counts), [port, counts]);
}
