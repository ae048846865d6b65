/** Where a message bus listens: `unix:path=/run/dbus/system_bus_socket,guid=…;unix:abstract=/tmp/dbus-x`. */

/** The paths of the unix sockets in an address, as `node:net` takes them; other transports are left out. */
export function socketPaths(address: string): readonly string[] {
  return address.split(';').flatMap((entry) => {
    if (!entry.startsWith('unix:')) return [];
    const pairs = new Map(
      entry
        .slice('unix:'.length)
        .split(',')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), unescape(pair.slice(pair.indexOf('=') + 1))]),
    );
    const abstract = pairs.get('abstract');
    const path = pairs.get('path') ?? (abstract === undefined ? undefined : `\0${abstract}`);
    return path === undefined ? [] : [path];
  });
}

function unescape(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

const SYSTEM_BUS = 'unix:path=/run/dbus/system_bus_socket;unix:path=/var/run/dbus/system_bus_socket';

/** Of the bus that the machine's services are on. */
export function systemBusPaths(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): readonly string[] {
  return socketPaths(environment['DBUS_SYSTEM_BUS_ADDRESS'] || SYSTEM_BUS);
}
