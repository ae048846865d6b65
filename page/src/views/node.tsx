export function NodeView({ query }: { readonly query: URLSearchParams }) {
  return <h1>Node {query.get('to')}</h1>;
}
