export function PacketView({ query }: { readonly query: URLSearchParams }) {
  return <h1>Packet {query.get('to')}</h1>;
}
