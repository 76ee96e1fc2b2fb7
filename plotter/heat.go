package plotter

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"math"
)

// heatLevels is the number of colors of a heat map from 0 to 100 %. Color 0 of the palette marks unmeasured values.
const heatLevels = 200

// encodeHeat returns rows of percentages as a PNG with one pixel per value, in base64. NaN values and the missing
// values of short rows are transparent.
func encodeHeat(rows [][]float64, columns int) string {
	palette := color.Palette{color.NRGBA{}}
	for i := range heatLevels {
		palette = append(palette, heatColor(float64(i)/(heatLevels-1)))
	}
	img := image.NewPaletted(image.Rect(0, 0, columns, len(rows)), palette)
	for y, row := range rows {
		for x, v := range row {
			if !math.IsNaN(v) {
				img.SetColorIndex(x, y, uint8(1+math.Round(min(100, max(0, v))*(heatLevels-1)/100)))
			}
		}
	}

	var out bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, img) // writing to a buffer cannot fail
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// heatColor returns the color of share, which is from 0 to 1. The colors range from sand through blue to dark violet.
// For every kind of color vision, and in grayscale, a lighter color means a smaller share.
func heatColor(share float64) color.NRGBA {
	stops := [...]color.NRGBA{rgb(0xf2f0e6), rgb(0x9ecfd6), rgb(0x3a8fb7), rgb(0x274f8f), rgb(0x2a1a52)}
	at := share * float64(len(stops)-1)
	k := min(int(at), len(stops)-2)
	a, b := stops[k], stops[k+1]
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (at-float64(k))*(float64(y)-float64(x)))) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}
