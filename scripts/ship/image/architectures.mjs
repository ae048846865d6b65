/** By Debian's and Kubernetes' name of an architecture: Node's. */
export const ARCHITECTURES = { amd64: 'x64', arm64: 'arm64' };
