module github.com/cavaliergopher/cpio

go 1.26.0
