import { createHash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { TOKEN_SCHEME } from '../machine-config/first-boot/pointer-config.js';

export interface AccessRules {
  /** CIDR; none: everybody. */
  readonly networks: readonly string[];
  /** The provisioning token of now; undefined: none is asked for. */
  readonly token: () => string | undefined;
  readonly needsClientCertificate: boolean;
}

export interface Visitor {
  readonly address: string;
  readonly authorization: string | undefined;
  /** It showed a client certificate of one of our authorities. */
  readonly isCertified: boolean;
}

export interface Denial {
  readonly status: 401 | 403;
  readonly reason: string;
}

/** Who may have what is secret. What a visitor sent is in no reason. */
export function accessControl(rules: AccessRules): (visitor: Visitor) => Denial | undefined {
  const allowed = blockListOf(rules.networks);
  return ({ address, authorization, isCertified }) => {
    if (allowed !== undefined && !isWithin(allowed, address)) {
      return { status: 403, reason: 'configs are not given to this network; see DRYDOCK_ALLOWED_NETWORKS' };
    }
    if (rules.needsClientCertificate && !isCertified) {
      return { status: 403, reason: 'a client certificate is asked for, and there was none of a known authority' };
    }
    const token = rules.token();
    if (token !== undefined && !isSame(authorization ?? '', `${TOKEN_SCHEME} ${token}`)) {
      return {
        status: 401,
        reason: `the provisioning token is asked for, as the header Authorization: ${TOKEN_SCHEME} …; \`drydock first-boot\` writes it`,
      };
    }
    return undefined;
  };
}

function blockListOf(networks: readonly string[]): BlockList | undefined {
  if (networks.length === 0) return undefined;
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/');
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** A socket for both families names clients of IPv4 in the form of IPv6. */
function isWithin(list: BlockList, address: string): boolean {
  const plain = address.replace(/^::ffff:(?=\d+\.)/u, '');
  const family = isIP(plain);
  return family !== 0 && list.check(plain, family === 6 ? 'ipv6' : 'ipv4');
}

/** Takes the same time wherever the first difference is. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}
