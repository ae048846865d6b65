# Junction's image. From the checkout: docker build -t REGISTRY/junction:0.2.0 .
# For a build that can be repeated, name the base by its digest: --build-arg BASE=node:20-bookworm-slim@sha256:…
ARG BASE=node:20-bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# Versions come from package-lock.json. `npm ci` refuses it, because optional packages of other systems are absent there.
RUN npm install --no-save
COPY tsconfig.json ./
COPY scripts scripts
COPY bench bench
COPY src src
COPY lab lab
COPY page page
RUN node scripts/build.mjs

FROM ${BASE} AS packages
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm install --no-save --omit=dev

FROM ${BASE}
LABEL org.opencontainers.image.title="junction" \
      org.opencontainers.image.description="A Kubernetes service proxy that takes kube-proxy's place" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# Both variants, nft and legacy; Junction uses the one that the node uses.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends iptables \
 && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /opt/junction
COPY package.json LICENSE ./
COPY bin bin
COPY --from=packages /src/node_modules node_modules
COPY --from=build /src/dist dist
# By kube-proxy's name too: its DaemonSet's command then starts Junction, with nothing but the image exchanged.
RUN ln -s /opt/junction/bin/junction /usr/local/bin/junction \
 && ln -s /opt/junction/bin/junction /usr/local/bin/kube-proxy
# Root, because Kubernetes gives capabilities to root only; which ones it keeps is the pod's business (deploy/).
USER 0:0
ENTRYPOINT ["node", "/opt/junction/bin/junction"]
CMD ["--help"]
