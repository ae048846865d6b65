export function ServiceView({ service }: { readonly service: string; readonly query: URLSearchParams }) {
  return <h1>{service}</h1>;
}
