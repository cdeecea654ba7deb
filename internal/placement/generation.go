package placement

// GenerationID identifies an embedding generation in this installation; 0 for none.
type GenerationID int16

// Generation identifies how vectors are computed. Vectors of two generations are not
// comparable, so each has its own collections.
type Generation struct {
	Model string
	// Revision distinguishes models of the same name: the checksum of a local model's
	// file, or a text that the administrator changes with the model of an endpoint.
	Revision string
	// Settings describes how texts become vectors: prefixes, pooling, window.
	Settings   string
	Dimensions int // length of the vectors
}

// UsedGeneration is a generation with stored vectors.
type UsedGeneration struct {
	Generation
	ID      GenerationID
	Tenants int64 // that are placed in it
}
