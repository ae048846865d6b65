import type { EndpointRow, ServicePortExplanation } from '../../../src/explain/types.ts';

/** The numbers of the later answer, and everything else of the former. */
export function withCounts(
  port: ServicePortExplanation,
  counts: readonly EndpointRow[],
): ServicePortExplanation {
  if (counts.length === 0) return port;
  const own = counts.filter(
    ({ servicePort, family }) => servicePort === port.servicePort && family === port.family,
  );
  const byAddress = new Map(own.map((row) => [row.address, row]));
  return {
    ...port,
    endpoints: port.endpoints.map((row) => {
      const later = byAddress.get(row.address);
      if (!later) return row;
      const { connections, rate, flows } = later;
      return {
        ...row,
        ...(connections !== undefined && { connections }),
        ...(rate !== undefined && { rate }),
        ...(flows !== undefined && { flows }),
      };
    }),
  };
}
