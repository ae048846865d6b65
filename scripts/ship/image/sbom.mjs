/** Everything that is in the image, as an SPDX document: npm's own list, Debian's packages, Node, and what the page has in it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm } from '../../support/npm.mjs';
import { ROOT } from '../../support/paths.mjs';
import { runQuietly } from '../../support/run.mjs';
import { nodeLock } from '../node.mjs';
import { ARCHITECTURES } from './architectures.mjs';

/** `digest`: the image's. */
export async function sbomOf({ arch, packages, source, digest }) {
  const name = `junction-${source.version}-linux-${arch}`;
  const parts = [
    ...(await npmPackages(arch)),
    pagePackage(),
    nodePackage(arch),
    ...packages.map(debianPackage),
  ];
  parts.sort((a, b) => (a.SPDXID < b.SPDXID ? -1 : 1));
  const image = imagePackage(name, source, digest);
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name,
    // It must be unique, and the same for the same image.
    documentNamespace: `https://spdx.org/spdxdocs/${name}-${digest.replace('sha256:', '')}`,
    creationInfo: { created: source.created, creators: ['Tool: npm-sbom', 'Tool: junction-image'] },
    documentDescribes: [image.SPDXID],
    packages: [image, ...parts],
    relationships: [
      relationship('SPDXRef-DOCUMENT', 'DESCRIBES', image.SPDXID),
      ...parts.map(({ SPDXID }) => relationship(image.SPDXID, 'CONTAINS', SPDXID)),
    ],
  };
}

function relationship(spdxElementId, relationshipType, relatedSpdxElement) {
  return { spdxElementId, relationshipType, relatedSpdxElement };
}

function imagePackage(name, { version }, digest) {
  return {
    ...UNKNOWN,
    name: 'junction',
    SPDXID: 'SPDXRef-Image',
    versionInfo: version,
    packageFileName: `${name}.oci.tar`,
    primaryPackagePurpose: 'CONTAINER',
    licenseDeclared: 'Apache-2.0',
    externalRefs: [purl(`pkg:oci/junction@${encodeURIComponent(digest)}?tag=${encodeURIComponent(version)}`)],
  };
}

const UNKNOWN = {
  downloadLocation: 'NOASSERTION',
  filesAnalyzed: false,
  licenseConcluded: 'NOASSERTION',
  copyrightText: 'NOASSERTION',
};

/** Of the lock, which has koffi's native part for every system, those that are in the program. */
async function npmPackages(arch) {
  const command = npm('sbom', '--package-lock-only', '--omit=dev', '--sbom-format=spdx', '--loglevel=error');
  const text = await runQuietly(command, { cwd: join(ROOT, 'deploy/runtime') });
  const { documentDescribes, packages } = JSON.parse(text.slice(text.indexOf('{')));
  const own = `@koromix/koffi-linux-${ARCHITECTURES[arch]}`;
  return packages
    .filter(({ SPDXID }) => !documentDescribes.includes(SPDXID))
    .filter(({ name }) => !name.startsWith('@koromix/') || name === own)
    .map(({ name, versionInfo, licenseDeclared, externalRefs, checksums }) => ({
      ...UNKNOWN,
      name,
      SPDXID: spdxId('npm', name),
      versionInfo,
      licenseDeclared,
      externalRefs,
      checksums,
    }));
}

function pagePackage() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const { version, license, integrity } = packages['node_modules/preact'];
  return npmPackage('preact', version, license, integrity);
}

function nodePackage(arch) {
  const { ships, lines } = nodeLock();
  const { version, integrity } = lines[ships];
  const node = ARCHITECTURES[arch];
  return npmPackage(`node-linux-${node}`, version, 'MIT', integrity[node]);
}

function npmPackage(name, version, license, integrity) {
  const checksumValue = Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex');
  return {
    ...UNKNOWN,
    name,
    SPDXID: spdxId('npm', name),
    versionInfo: version,
    licenseDeclared: license,
    externalRefs: [purl(`pkg:npm/${encodeURIComponent(name)}@${version}`)],
    checksums: [{ algorithm: 'SHA512', checksumValue }],
  };
}

/** Licences are in /usr/share/doc/NAME/copyright of the image, as text. */
function debianPackage({ name, version, architecture, sha256 }) {
  const [at, arch] = [encodeURIComponent(version), encodeURIComponent(architecture)];
  return {
    ...UNKNOWN,
    name,
    SPDXID: spdxId('deb', name),
    versionInfo: version,
    supplier: 'Organization: Debian',
    licenseDeclared: 'NOASSERTION',
    externalRefs: [purl(`pkg:deb/debian/${encodeURIComponent(name)}@${at}?arch=${arch}&distro=debian-12`)],
    checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }],
  };
}

function purl(locator) {
  return { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: locator };
}

/** Letters, digits, dots and dashes. */
function spdxId(kind, name) {
  return `SPDXRef-${kind}-${name
    .replaceAll('+', 'p')
    .replaceAll(/[^A-Za-z0-9.-]+/g, '-')
    .replace(/^-/, '')}`;
}
