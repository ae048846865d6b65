# Junction's image for those who have Docker; `npm run image` makes one without. From the checkout:
#   docker build -t REGISTRY/junction:0.2.0 --build-arg JUNCTION_COMMIT=$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) .
# For a build that can be repeated, name the base by its digest: --build-arg BASE=node:24-bookworm-slim@sha256:…
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# The tools. `npm ci` refuses their lock, because builds for other systems are absent there: what came is compared with it.
RUN npm install --no-save
COPY scripts scripts
RUN node scripts/support/lockCheck.mjs
COPY tsconfig.json LICENSE ./
COPY deploy/runtime deploy/runtime
COPY src src
COPY page page
# The repository is not here, so the program is told what it was built from.
ARG JUNCTION_COMMIT=unknown
ARG SOURCE_DATE_EPOCH
# Its packages come by `npm ci` from deploy/runtime.
RUN node scripts/ship/program.mjs /out

FROM ${BASE}
LABEL org.opencontainers.image.title="junction" \
      org.opencontainers.image.description="A Kubernetes service proxy that takes kube-proxy's place" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# Both variants, nft and legacy; Junction uses the one that the node uses.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends iptables \
 && rm -rf /var/lib/apt/lists/*
# The semi-space: docs/sizing.md.
ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=4
WORKDIR /opt/junction
COPY --from=build /out ./
# By kube-proxy's name too: its DaemonSet's command then starts Junction, with nothing but the image exchanged.
RUN mkdir bin \
 && for name in junction kubectl-junction; do printf '#!/usr/bin/env node\nimport "../%s.js";\n' $name > bin/$name; done \
 && chmod 755 bin/* \
 && ln -s /opt/junction/bin/* /usr/local/bin/ \
 && ln -s /opt/junction/bin/junction /usr/local/bin/kube-proxy
# Root, because Kubernetes gives capabilities to root only; which ones it keeps is the pod's business (deploy/).
USER 0:0
ENTRYPOINT ["node", "/opt/junction/junction.js"]
CMD ["--help"]
