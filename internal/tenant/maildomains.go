package tenant

import "slices"

// publicMailDomains are well-known providers whose addresses anyone can create. The
// list protects against mistakes of administrators who allow any domain; it is not complete.
var publicMailDomains = []string{
	"126.com", "163.com", "aol.com", "fastmail.com", "free.fr", "gmail.com", "gmx.de", "gmx.net", "googlemail.com",
	"hey.com", "hotmail.com", "icloud.com", "laposte.net", "live.com", "mac.com", "mail.com", "mail.ru", "me.com",
	"msn.com", "naver.com", "orange.fr", "outlook.com", "pm.me", "proton.me", "protonmail.com", "qq.com",
	"t-online.de", "tutanota.com", "web.de", "yahoo.com", "yandex.com", "yandex.ru", "ymail.com", "zoho.com",
}

// IsPublicMailDomain reports whether anyone can create an address in the domain.
func IsPublicMailDomain(domain string) bool {
	_, found := slices.BinarySearch(publicMailDomains, domain)
	return found
}
