export function SyncsView({ query }: { readonly query: URLSearchParams }) {
  return <h1>Syncs {query.get('to')}</h1>;
}
