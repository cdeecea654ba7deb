package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
)

// platformAliases maps companies to their platforms.
var platformAliases = map[string]string{"openai": "chatgpt", "anthropic": "claude"}

// NormalizePlatform returns the form in which the names of platforms are compared:
// in lower case, and with aliases resolved. It returns "" for all platforms.
func NormalizePlatform(name string) string {
	name = strings.ToLower(name)
	if name == AllPlatforms {
		return ""
	}
	if platform, ok := platformAliases[name]; ok {
		return platform
	}
	return name
}

// PlatformNames returns the names, in lower case, that are compared as equal to this
// one, and none for all platforms.
func PlatformNames(name string) []string {
	platform := NormalizePlatform(name)
	if platform == "" {
		return []string{}
	}
	names := []string{platform}
	for alias, of := range platformAliases {
		if of == platform {
			names = append(names, alias)
		}
	}
	return names
}

// groupOf returns the group of the platform's units.
func groupOf(platform string) int64 { return retrieve.GroupOf(NormalizePlatform(platform)) }

// hint returns the platform to which a recall is limited, normalized, or "" for all.
// Clients name themselves, so a platform without active conversations is no filter.
func (s *Service) hint(ctx context.Context, scope tenant.Scope, platform string) (string, error) {
	if platform = NormalizePlatform(platform); platform == "" {
		return "", nil
	}
	known, err := s.Passages.HasPlatform(ctx, scope, PlatformNames(platform))
	if err != nil {
		return "", fmt.Errorf("read platforms: %w", err)
	}
	if !known {
		return "", nil
	}
	return platform, nil
}
